// SPDX-License-Identifier: Apache-2.0
// The front of a line of trace text: task, CPU, time, event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sink/event_table.h"

namespace wbscope {

// Longer words are no names of events or fields; the kernel's have 64 characters.
inline constexpr std::size_t kMaxTextName = 128;

enum class HeadStyle : std::uint8_t {
  kFtrace,   // comm-tid [cpu] flags ts: event: payload, of the kernel or trace-cmd
  kLatency,  // comm-tid cpu+flags ts: event: payload
  kPerf,     // comm tid [cpu] ts: system:event: payload
};

struct LineHead {
  HeadStyle style = HeadStyle::kFtrace;
  std::string_view comm;  // "<...>" when the kernel did not know it
  std::int32_t tid = EventLead::kNoTid;
  std::uint32_t cpu = EventLead::kNoCpu;
  std::int64_t ts = 0;    // ns, or ticks
  bool is_ticks = false;  // a plain number, as clocks that are not time print
  bool has_flags = false;
  std::uint8_t context = 0;  // of common_flags, hardirq 8 and softirq 16, where it has flags
  std::string_view system;  // "" when the line does not tell
  std::string_view event;   // "" for a line of the function tracer
  std::string_view payload;
  bool is_padded = false;  // several blanks behind a short event name: trace-cmd
};

// Nothing when the line does not begin like any of them.
[[nodiscard]] std::optional<LineHead> parse_line_head(std::string_view line);

// "CPU:1 [LOST 12 EVENTS]", "CPU 1: [12 EVENTS DROPPED]": the kernel's and
// trace-cmd's notes that the ring buffer overran. "Lost 12 events": bpftrace's,
// of no CPU.
struct LostNote {
  std::uint32_t cpu = EventLead::kNoCpu;
  std::optional<std::uint64_t> count;
};
[[nodiscard]] std::optional<LostNote> parse_lost_note(std::string_view line);

// "[   12.345678] " with an optional date, host and "kernel: " in front, and
// what stands behind it.
struct LogLine {
  std::optional<std::int64_t> ts;
  std::string_view text;
};
[[nodiscard]] LogLine parse_log_line(std::string_view line);

// "12.345678" in ns; a plain number as it is.
struct TimeText {
  std::int64_t ts = 0;
  bool is_ticks = false;
};
[[nodiscard]] std::optional<TimeText> parse_time(std::string_view text);

}  // namespace wbscope
