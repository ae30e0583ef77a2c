// SPDX-License-Identifier: Apache-2.0
// What --time-range and --limit choose, of a trace of any format.
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/cpu_stream.h"
#include "sink/run_writer.h"
#include "time_bounds.h"

namespace wbscope {

// Sum that stops at the ends of the clock.
[[nodiscard]] std::int64_t after(std::int64_t start, std::int64_t ns) noexcept;

// Whether time_range() needs the time of the first record.
[[nodiscard]] bool needs_start(const TimeBounds& bounds) noexcept;

// What --time-range asks for, on the trace clock; start: of the first record.
// Raises: Error when the range is empty.
[[nodiscard]] TimeRange time_range(const TimeBounds& bounds, std::int64_t start);

// The keys of meta that say which part it is. limit: the one that was reached.
void write_selection(RunWriter& run, const TimeRange& range,
                     const std::optional<std::uint64_t>& limit);

}  // namespace wbscope
