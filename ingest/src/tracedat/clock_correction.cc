// SPDX-License-Identifier: Apache-2.0
// Time stamps of the ring buffer as trace-cmd report shows them.
#include "tracedat/clock_correction.h"

#include <algorithm>
#include <iterator>

namespace wbscope {
namespace {

// Two's complement, as the C of trace-cmd computes it in practice.
std::int64_t wrapped(std::uint64_t value) noexcept { return static_cast<std::int64_t>(value); }

// min.offset plus its share of the way to max.offset, rounded to the nearest.
std::int64_t interpolated(std::uint64_t ts, const ShiftSample& min,
                          const ShiftSample& max) noexcept {
  const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::int64_t delta = wrapped(bits(max.time) - bits(min.time));
  const std::int64_t product = wrapped((ts - bits(min.time)) * (bits(max.offset) - bits(min.offset)));
  const std::int64_t rounded = wrapped(bits(product) + bits(delta / 2));
  if (delta == 0 || (delta == -1 && rounded == INT64_MIN)) return min.offset;
  return wrapped(bits(min.offset) + bits(rounded / delta));
}

}  // namespace

bool counts_ticks(const TraceInfo& info, std::string_view clock) noexcept {
  constexpr std::string_view kTicks[] = {"counter", "uptime", "x86-tsc", "ppc-tb"};
  return !info.has_tsc && std::ranges::find(kTicks, clock) != std::end(kTicks);
}

ClockCorrection::ClockCorrection(const TraceInfo& info, std::size_t buffer, std::uint32_t cpu)
    : interpolate_((info.shift.flags & ClockShift::kInterpolate) != 0),
      has_tsc_(info.has_tsc && info.tsc_multiplier != 0),
      tsc_multiplier_(info.tsc_multiplier),
      tsc_shift_(info.tsc_shift),
      offset_(static_cast<std::uint64_t>(info.ts_offset_ns)) {
  // trace-cmd report corrects the top buffer only; so do we, that both agree.
  if (buffer < info.buffers.size() && info.buffers[buffer].name.empty() &&
      cpu < info.shift.cpus.size()) {
    samples_ = info.shift.cpus[cpu];
  }
}

// timestamp_host_sync(): a constant for one sample; else the pair around the
// time, or the first or last pair.
std::uint64_t ClockCorrection::to_host(std::uint64_t raw) const noexcept {
  if (samples_.size() == 1) return raw + static_cast<std::uint64_t>(samples_[0].offset);
  const auto later = std::upper_bound(
      samples_.begin(), samples_.end(), raw, [](std::uint64_t ts, const ShiftSample& sample) {
        return ts < static_cast<std::uint64_t>(sample.time);
      });
  const auto index = std::clamp<std::ptrdiff_t>(later - samples_.begin() - 1, 0,
                                                static_cast<std::ptrdiff_t>(samples_.size()) - 2);
  const ShiftSample& min = samples_[static_cast<std::size_t>(index)];
  const ShiftSample& max = samples_[static_cast<std::size_t>(index) + 1];
  const std::int64_t shift = interpolate_ ? interpolated(raw, min, max) : min.offset;
  const std::uint64_t scaled =
      (raw * static_cast<std::uint64_t>(min.scaling)) >> (min.fraction & 63);
  return scaled + static_cast<std::uint64_t>(shift);
}

}  // namespace wbscope
