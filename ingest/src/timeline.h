// SPDX-License-Identifier: Apache-2.0
// The job "timeline": rows of timeline views become a Perfetto trace.
#pragma once

#include <string>
#include <vector>

#include "base/reporter.h"

namespace wbscope {

struct TimelineOptions {
  std::string database;
  std::string setup_path;          // SQL that makes the views, as TEMP views
  std::vector<std::string> views;  // each with (ts, dur, track, name, value, unit, args)
  std::string trace;               // trace.dat or run folder whose events ride along; "": none
  std::vector<std::string> globs;  // on "system:name" or "name": those that do
  std::string output;
  bool force = false;
};

// Raises: Error.
void export_timeline(const TimelineOptions& options, const Reporter& reporter);

}  // namespace wbscope
