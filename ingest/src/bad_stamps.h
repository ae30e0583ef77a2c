// SPDX-License-Identifier: Apache-2.0
// What is said of time stamps that are wrong, of a trace of any format.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "pipeline/cpu_stream.h"
#include "pipeline/stamp_check.h"
#include "tracedat/trace_info.h"

namespace wbscope {

inline constexpr const char* kBadStampsSlug = "bad-stamps";

// Which stamps of a trace.dat are wrong. Pre: the streams were read whole.
[[nodiscard]] StampPlan judge_stamps(const std::vector<StampStream>& streams,
                                     const TraceInfo& info);

// As a part of the trace's damage. records: that got another time.
[[nodiscard]] Message bad_stamps_message(const StampPlan& plan, std::uint64_t records);

}  // namespace wbscope
