// SPDX-License-Identifier: Apache-2.0
// Parsers of what the recorder noted of the machine: settings, mounts, devices,
// swap. Each gives rows and counts lines it cannot read. Paths are as programs
// know them: blanks and the like are octal in the kernel's text (\040).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sidecar/proc_text.h"

namespace wbscope {

struct Setting {
  std::string_view name;
  std::string_view value;
  std::optional<std::int64_t> number;  // the first word of value
};
// Output of sysctl: "name = value".
TextProblems parse_sysctls(std::string_view text,
                           const std::function<void(const Setting&)>& on_row);

struct Mount {
  std::uint64_t line = 0;
  std::string_view device;  // major:minor; in bdis the name of a bdi
  std::string source;       // in mountinfo it may be empty
  std::string mount;
  std::string_view type;
  std::string_view options;  // of the file system, as written
};
using OnMount = std::function<void(const Mount&)>;

// /proc/self/mountinfo (man 5 proc): "36 35 8:1 / /data rw ... - ext4 /dev/sda1 rw".
TextProblems parse_mounts(std::string_view text, const OnMount& on_row);
// The file bdis of wbscope record: "bdi device mount type".
TextProblems parse_bdis(std::string_view text, const OnMount& on_row);

struct SwapArea {
  std::string path;
  std::string_view type;
  std::int64_t size_kib = 0;
  std::int64_t used_kib = 0;
  std::int64_t priority = 0;
};
// /proc/swaps, below its heading.
TextProblems parse_swaps(std::string_view text,
                         const std::function<void(const SwapArea&)>& on_row);

struct Stacked {
  std::string_view bdi;
  std::string_view disk;  // major:minor
};
// The file stacks of wbscope record: a device, one that it lies on.
TextProblems parse_stacks(std::string_view text,
                          const std::function<void(const Stacked&)>& on_row);

}  // namespace wbscope
