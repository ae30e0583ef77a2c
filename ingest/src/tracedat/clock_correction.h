// SPDX-License-Identifier: Apache-2.0
// ClockCorrection: time stamps of the ring buffer as trace-cmd report shows
// them (timestamp_calc() of its lib/trace-cmd/trace-input.c).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tracedat/trace_info.h"

namespace wbscope {

// Whether stamps of this clock are ticks that nothing says the length of
// (kernel/trace/trace.c, trace_clocks[]).
[[nodiscard]] bool counts_ticks(const TraceInfo& info, std::string_view clock) noexcept;

// For one CPU of one buffer: first the guest's clock becomes the host's
// (option TIME_SHIFT), then the counter becomes ns (TSC2NSEC), then a constant
// is added (OFFSET, DATE).
class ClockCorrection {
 public:
  ClockCorrection(const TraceInfo& info, std::size_t buffer, std::uint32_t cpu);

  // ns, or ticks for clocks that are not time. Wraps instead of overflowing: a
  // hostile stamp must not be undefined.
  [[nodiscard]] std::int64_t to_ns(std::uint64_t raw) const noexcept {
    if (!samples_.empty()) [[unlikely]] raw = to_host(raw);
    if (has_tsc_) {
      raw = static_cast<std::uint64_t>(
          (static_cast<unsigned __int128>(raw) * tsc_multiplier_) >> tsc_shift_);
    }
    return static_cast<std::int64_t>(raw + offset_);
  }

 private:
  [[nodiscard]] std::uint64_t to_host(std::uint64_t raw) const noexcept;

  std::span<const ShiftSample> samples_;  // of TraceInfo; sorted by time
  bool interpolate_;
  bool has_tsc_;
  std::uint32_t tsc_multiplier_;
  std::uint32_t tsc_shift_;
  std::uint64_t offset_;
};

}  // namespace wbscope
