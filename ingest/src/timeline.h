// SPDX-License-Identifier: Apache-2.0
// The job "timeline": rows of timeline views become a Perfetto trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/reporter.h"
#include "time_bounds.h"
#include "timeline_lanes.h"

namespace wbscope {

struct TimelineOptions {
  std::string database;
  std::string setup_path;          // SQL that makes the views, as TEMP views; "-": stdin
  std::vector<std::string> views;  // each with (ts, dur, track, name, value, unit, args)
  std::vector<LaneOptions> lanes;  // some of the views, which do not read what setup makes
  unsigned threads = 2;            // 1: lanes have none of their own
  std::string trace;               // trace.dat or run folder whose events ride along; "": none
  std::vector<std::string> globs;  // on "system:name" or "name": those that do
  TimeBounds events_part;          // the part of them
  // For two runs in one trace: the root's name instead of the views' own, with the
  // threads below it; what the names of its groups begin with; what is added to each
  // time; the packet sequence.
  std::string root;
  std::string mark;
  std::int64_t shift_ns = 0;
  std::uint32_t sequence = 0;  // 0: the usual one
  std::string output;
  bool force = false;
};

// Raises: Error.
void export_timeline(const TimelineOptions& options, const Reporter& reporter);

}  // namespace wbscope
