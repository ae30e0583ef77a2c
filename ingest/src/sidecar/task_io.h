// SPDX-License-Identifier: Apache-2.0
// The file task_io of wbscope record: what each thread has dirtied.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sidecar/proc_text.h"

namespace wbscope {

// The values of a line, in the order of the columns of sidecar_task_io.
inline constexpr std::array<std::string_view, 12> kTaskIoKeys{
    "ts",
    "tid",
    "tgid",
    "write_bytes",
    "cancelled_write_bytes",
    "write_char_bytes",
    "read_bytes",
    "read_char_bytes",
    "blkio_delay_ns",
    "swapin_delay_ns",
    "freepages_delay_ns",
    "thrashing_delay_ns"};

struct TaskIo {
  std::string_view sample;  // start, end or exit
  std::array<std::optional<std::int64_t>, kTaskIoKeys.size()> values;
  std::string comm;
};

// Lines "exit ts=1 tid=2 ... comm=NAME"; in NAME, \n and \\ stand for what they
// stand for in /proc/PID/status. Keys of later versions are passed over.
TextProblems parse_task_io(std::string_view text,
                           const std::function<void(const TaskIo&)>& on_thread);

}  // namespace wbscope
