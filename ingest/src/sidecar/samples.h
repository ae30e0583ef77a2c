// SPDX-License-Identifier: Apache-2.0
// Sidecars of several samples or several objects, as wbscope record writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sidecar/proc_text.h"

namespace wbscope {

// One sample of a series, or one object of a file; line is its first, from 1.
struct TextPart {
  std::int64_t ts = 0;
  std::string_view object;
  std::string_view text;
  std::uint64_t line = 1;
};
using OnPart = std::function<TextProblems(const TextPart&)>;

// A series: lines "# ts=NS", each followed by the text that was read then.
TextProblems each_sample(std::string_view text, const OnPart& on_part);
bool starts_with_time(std::string_view text);
// Several files in one: lines "== NAME", each followed by the text of that file.
TextProblems each_object(std::string_view text, const OnPart& on_part);

// /sys/block/DISK/stat: numbers by place (Documentation/block/stat.rst). Before
// them there may be "dev MAJOR:MINOR", which gives dev_major and dev_minor.
TextProblems parse_block_stat(std::string_view text, const OnNamedValue& on_value);
// /sys/kernel/debug/bdi/BDI/stats: as meminfo, but "state" is hexadecimal.
// wb_stats beside it has the same of each cgroup, which the recorder takes apart.
TextProblems parse_bdi_stats(std::string_view text, const OnNamedValue& on_value);
// /proc/pressure/RESOURCE: "some_total" and "full_total", microseconds.
TextProblems parse_pressure(std::string_view text, const OnNamedValue& on_value);
// A file of a cgroup, by its name (Documentation/admin-guide/cgroup-v2.rst):
// memory.stat, memory.events, io.stat ("254:0 wbytes"), *.pressure, or one number,
// which has the name of the file.
TextProblems parse_cgroup_file(std::string_view file, std::string_view text,
                               const OnNamedValue& on_value);

}  // namespace wbscope
