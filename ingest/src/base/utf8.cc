// SPDX-License-Identifier: Apache-2.0
// UTF-8 checks.
#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace wbscope {
namespace {

// Bytes of the well-formed character at the start of text; 0 when there is none.
std::size_t character_bytes(std::string_view text) noexcept {
  const auto byte = [&text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t count = 0;
  std::uint32_t least = 0;
  std::uint32_t code = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    count = 2, least = 0x80, code = lead & 0x1fu;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    count = 3, least = 0x800, code = lead & 0x0fu;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    count = 4, least = 0x10000, code = lead & 0x07u;
  } else {
    return 0;
  }
  if (text.size() < count) return 0;
  for (std::size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least || surrogate || code > 0x10ffff ? 0 : count;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; })) return true;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      out += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return out;
}

}  // namespace wbscope
