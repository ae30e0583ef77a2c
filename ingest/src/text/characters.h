// SPDX-License-Identifier: Apache-2.0
// Kinds of characters in trace text, which is looked at one by one: the library's
// own ways ask for the locale, or call memchr(), for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace wbscope {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
// Of the name of an event or field.
[[nodiscard]] constexpr bool is_name(char c) noexcept {
  return is_letter(c) || is_digit(c) || c == '_';
}
[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

// Where the next blank, or what is none, stands at or after `at`; else the size.
[[nodiscard]] constexpr std::size_t find_blank(std::string_view text, std::size_t at = 0) noexcept {
  while (at < text.size() && !is_blank(text[at])) ++at;
  return std::min(at, text.size());
}
[[nodiscard]] constexpr std::size_t skip_blanks(std::string_view text, std::size_t at = 0) noexcept {
  while (at < text.size() && is_blank(text[at])) ++at;
  return std::min(at, text.size());
}

[[nodiscard]] constexpr std::string_view without_lead(std::string_view text) noexcept {
  return text.substr(skip_blanks(text));
}
[[nodiscard]] constexpr std::string_view without_tail(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace wbscope
