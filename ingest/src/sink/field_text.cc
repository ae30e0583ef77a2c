// SPDX-License-Identifier: Apache-2.0
// Bit masks, CPU lists and socket addresses as text.
#include "sink/field_text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>

namespace wbscope {
namespace {

// Linux numbers of address families, whatever this machine calls them.
constexpr std::uint16_t kInet = 2;
constexpr std::uint16_t kInet6 = 10;

// Byte i of a mask, the lowest first: the lowest long comes first, its lowest
// byte as the byte order says.
unsigned mask_byte(std::span<const std::byte> mask, std::size_t i, MaskLayout layout) {
  if (layout.order == ByteOrder::kBig) {
    const std::size_t first = i / layout.long_bytes * layout.long_bytes;
    const std::size_t last = std::min<std::size_t>(first + layout.long_bytes, mask.size()) - 1;
    i = last - (i - first);
  }
  return std::to_integer<unsigned>(mask[i]);
}

}  // namespace

void append_bitmask(std::span<const std::byte> mask, MaskLayout layout, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (std::size_t i = mask.size(); i-- > 0;) {
    const unsigned byte = mask_byte(mask, i, layout);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
    if (i > 0 && i % 4 == 0) out += ',';
  }
}

void append_cpumask(std::span<const std::byte> mask, MaskLayout layout, std::string& out) {
  const std::size_t bits = mask.size() * 8;
  const auto is_set = [&](std::size_t bit) {
    return bit < bits && (mask_byte(mask, bit / 8, layout) >> (bit % 8) & 1u) != 0;
  };
  const std::size_t start = out.size();
  for (std::size_t bit = 0; bit < bits; ++bit) {
    if (!is_set(bit)) continue;
    std::size_t last = bit;
    while (is_set(last + 1)) ++last;
    if (out.size() > start) out += ',';
    out += std::to_string(bit);
    if (last > bit) {
      out += '-';
      out += std::to_string(last);
    }
    bit = last;
  }
}

bool append_sockaddr(std::span<const std::byte> address, ByteOrder order, std::string& out) {
  constexpr std::size_t kInetBytes = 16, kInet6Bytes = 28;
  if (address.size() < 4) return false;
  const auto family = load<std::uint16_t>(address.data(), order);
  const auto port = std::to_string(load<std::uint16_t>(address.data() + 2, ByteOrder::kBig));
  char text[INET6_ADDRSTRLEN] = {};
  if (family == kInet && address.size() >= kInetBytes) {
    ::inet_ntop(AF_INET, address.data() + 4, text, sizeof(text));
    out.append(text).append(":").append(port);
    return true;
  }
  if (family == kInet6 && address.size() >= kInet6Bytes) {
    ::inet_ntop(AF_INET6, address.data() + 8, text, sizeof(text));
    out.append("[").append(text).append("]:").append(port);
    return true;
  }
  return false;
}

}  // namespace wbscope
