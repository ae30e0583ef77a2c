// SPDX-License-Identifier: Apache-2.0
// The part of a trace that is read.
#include "selection.h"

#include <string>

namespace wbscope {

std::int64_t after(std::int64_t start, std::int64_t ns) noexcept {
  std::int64_t sum = 0;
  return __builtin_add_overflow(start, ns, &sum) ? INT64_MAX : sum;
}

bool needs_start(const TimeBounds& bounds) noexcept {
  return (bounds.from && bounds.from->after_start) || (bounds.to && bounds.to->after_start);
}

TimeRange time_range(const TimeBounds& bounds, std::int64_t start) {
  TimeRange range;
  const auto place = [start](const TimeBound& bound) {
    return bound.after_start ? after(start, bound.ns) : bound.ns;
  };
  if (bounds.from) range.first = place(*bounds.from);
  if (bounds.to) range.end = place(*bounds.to);
  if (range.first < range.end) return range;
  throw Error(Exit::kUsage,
              {.slug = "empty-range",
               .object = "--time-range",
               .text = "found the range " + std::to_string(range.first) + ".." +
                       std::to_string(range.end) + " ns, wanted its end after its start",
               .at = {},
               .have = {},
               .effect = "nothing was written",
               .fix = {}});
}

void write_selection(RunWriter& run, const TimeRange& range,
                     const std::optional<std::uint64_t>& limit) {
  run.meta("partial", std::int64_t{!range.is_whole() || limit ? 1 : 0});
  if (range.first != INT64_MIN) run.meta("range_first_ts", range.first);
  if (range.end != INT64_MAX) run.meta("range_end_ts", range.end);
  if (limit) run.meta("loaded_limit", static_cast<std::int64_t>(*limit));
}

}  // namespace wbscope
