// SPDX-License-Identifier: Apache-2.0
// How a Perfetto trace says which clock its times are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wbscope {

// Clock ids of Perfetto (protos/perfetto/common/builtin_clock.proto).
namespace clocks {
inline constexpr std::uint32_t kMonotonic = 3, kMonotonicRaw = 5, kBoottime = 6, kTsc = 9,
                               kPerf = 10;
inline constexpr std::uint32_t kOwn = 128;  // the first one that producers may use
}  // namespace clocks

// A clock in the kernel's words ("boot", "mono", "local", ...) as Perfetto
// knows it. Times are never changed: where Perfetto wants a clock that a trace
// does not tell, that clock is declared to show the same time.
struct TraceClock {
  // Of packets with a time of their own (timestamp_clock_id).
  std::uint32_t packets = clocks::kBoottime;
  // FtraceClock of ftrace bundles; 0: they are on BOOTTIME.
  std::uint32_t bundles = 0;
  // What the trace is shown in; nothing: BOOTTIME, as readers take it.
  std::optional<std::uint32_t> primary;
  // Bundles have to carry a pair of times to be placed.
  bool bundles_need_pair = false;
};

// Of several machines none has a primary clock: since Perfetto v58 a clock is one of
// its machine, the trace is shown in that of the last one, and readers know the way to
// it from the same clock of other machines only when that is BOOTTIME.
[[nodiscard]] TraceClock trace_clock(std::string_view name, std::size_t machines = 1);

// A packet without tag and length. ts: a time of the trace; machine 0 is the
// one that the trace is of.
[[nodiscard]] std::string clock_packet(const TraceClock& clock, std::int64_t ts,
                                       std::uint32_t sequence, std::uint32_t machine = 0);

}  // namespace wbscope
