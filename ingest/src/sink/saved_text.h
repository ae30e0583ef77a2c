// SPDX-License-Identifier: Apache-2.0
// Texts of tracefs that trace-cmd saves in a trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wbscope {

// saved_cmdlines: "pid comm" lines. Tasks that the kernel did not know either
// are left out.
[[nodiscard]] std::map<std::int32_t, std::string> parse_saved_cmdlines(std::string_view text);

// A file per_cpu/cpuN/stats: "CPU: N", then "key: value" lines.
struct CpuStat {
  std::int64_t cpu = -1;
  std::vector<std::pair<std::string, std::string>> values;
};
[[nodiscard]] CpuStat parse_cpu_stat(std::string_view text);

}  // namespace wbscope
