// SPDX-License-Identifier: Apache-2.0
// What --time-range says, before the first record is known.
#pragma once

#include <cstdint>
#include <optional>

namespace wbscope {

// A border of the part that is read.
struct TimeBound {
  std::int64_t ns = 0;
  bool after_start = false;  // counted from the first record, not from the clock's zero
};

struct TimeBounds {
  std::optional<TimeBound> from;  // records at or after it
  std::optional<TimeBound> to;    // and before this
};

}  // namespace wbscope
