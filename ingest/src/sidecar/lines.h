// SPDX-License-Identifier: Apache-2.0
// Lines, words and numbers of sidecar texts.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace wbscope {

// The whole of text as a decimal number.
[[nodiscard]] inline std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Between blanks, tabs and returns; not all of a line that has very many.
[[nodiscard]] inline std::vector<std::string_view> words(std::string_view line) {
  constexpr std::size_t kMaxWords = 64;
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (out.size() < kMaxWords) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) break;
    auto end = line.find_first_of(" \t\r", at);
    if (end == std::string_view::npos) end = line.size();
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

// Takes off what is before the next blank, and the blank.
[[nodiscard]] inline std::string_view take_field(std::string_view& line) {
  const auto end = line.find(' ');
  const auto field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

// Calls on_line(number, line), counted from 1.
template <typename OnLine>
void each_line(std::string_view text, OnLine&& on_line) {
  std::uint64_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    on_line(++number, text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace wbscope
