// SPDX-License-Identifier: Apache-2.0
// Texts of tracefs that trace-cmd saves in a trace.
#include "sink/saved_text.h"

#include <charconv>

#include "base/utf8.h"

namespace wbscope {
namespace {

// Calls on_line for each line of text, without its newline.
template <typename OnLine>
void each_line(std::string_view text, OnLine&& on_line) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    on_line(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::map<std::int32_t, std::string> parse_saved_cmdlines(std::string_view text) {
  std::map<std::int32_t, std::string> names;
  each_line(text, [&names](std::string_view line) {
    std::int32_t tid = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), tid);
    const auto used = static_cast<std::size_t>(end - line.data());
    if (problem != std::errc() || used >= line.size() || line[used] != ' ') return;
    auto comm = line.substr(used + 1);
    comm = comm.substr(0, comm.find('\0'));
    if (comm == "<...>") return;
    names[tid] = replace_invalid_utf8(comm);
  });
  return names;
}

CpuStat parse_cpu_stat(std::string_view text) {
  CpuStat stat;
  each_line(text, [&stat](std::string_view line) {
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string key = replace_invalid_utf8(line.substr(0, colon));
    auto value = line.substr(colon + 2);
    while (value.starts_with(' ')) value.remove_prefix(1);
    if (key != "CPU") {
      stat.values.emplace_back(key, replace_invalid_utf8(value));
      return;
    }
    std::int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    stat.cpu = number;
  });
  return stat;
}

}  // namespace wbscope
