// SPDX-License-Identifier: Apache-2.0
// Texts of binary printk events (trace_printk, kernel/trace/trace_printk.c).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_reader.h"

namespace wbscope {

// Formats by address, from the kernel's printk_formats:
//   0xffffffff82000000 : "entry %d\n"
// with escapes undone and without the newline at the end.
using PrintkFormats = std::map<std::uint64_t, std::string>;
[[nodiscard]] PrintkFormats parse_printk_formats(std::string_view text);

// The text that format makes of the arguments in args, laid out as
// vbin_printf() of lib/vsprintf.c does. Addresses stay numbers. Nothing when
// the arguments end too early.
[[nodiscard]] std::optional<std::string> printk_text(std::string_view format,
                                                     std::span<const std::byte> args,
                                                     std::uint32_t long_bytes, ByteOrder order);

}  // namespace wbscope
