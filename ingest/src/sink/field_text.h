// SPDX-License-Identifier: Apache-2.0
// Bytes of a record that the kernel prints as one text: bit masks, CPU lists,
// socket addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/byte_reader.h"

namespace wbscope {

// How the longs of a mask are laid out.
struct MaskLayout {
  ByteOrder order = ByteOrder::kLittle;
  std::uint32_t long_bytes = 8;
};

// Hexadecimal, the highest bits first, a comma after each 32: "00000003,00000001".
void append_bitmask(std::span<const std::byte> mask, MaskLayout layout, std::string& out);

// The numbers of the bits that are set, as CPU lists are: "0-3,7".
void append_cpumask(std::span<const std::byte> mask, MaskLayout layout, std::string& out);

// struct sockaddr: "127.0.0.1:2049", "[::1]:2049". false when it is of another
// family, or shorter than its family needs.
[[nodiscard]] bool append_sockaddr(std::span<const std::byte> address, ByteOrder order,
                                   std::string& out);

}  // namespace wbscope
