// SPDX-License-Identifier: Apache-2.0
// Lines of /proc/kallsyms.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wbscope {

struct KernelSymbol {
  // Further above its symbol than any function is long: no code of that symbol.
  static constexpr std::uint64_t kMaxOffset = 128u << 10;

  std::uint64_t address = 0;
  std::string_view name;
  std::string_view module;  // "" in the kernel itself
};

// "ffffffff81000000 T _stext" or "ffffffffc0000000 t func\t[module]". Nothing
// for other lines, and for absolute symbols, which are numbers, not places.
[[nodiscard]] std::optional<KernelSymbol> parse_kallsyms_line(std::string_view line);

}  // namespace wbscope
