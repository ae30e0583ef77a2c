// SPDX-License-Identifier: Apache-2.0
// The job "convert": every event of traces as a Perfetto trace.
#pragma once

#include <string>
#include <vector>

#include "base/reporter.h"
#include "time_bounds.h"

namespace wbscope {

struct ConvertOptions : TimeBounds {
  std::vector<std::string> sources;  // trace.dat or run folder; the first is of the host
  std::string output;
  std::vector<std::string> globs;  // events, on "system:name" or "name"; none: all
  bool compat = false;             // generic events in the form that readers before v50 know
  bool force = false;
  bool no_unpack_limit = false;  // see UnpackBudget, WriteBudget
  unsigned threads = 0;  // 0: one for each processor
};

// Raises: Error.
void convert_to_perfetto(const ConvertOptions& options, const Reporter& reporter);

}  // namespace wbscope
