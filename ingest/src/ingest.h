// SPDX-License-Identifier: Apache-2.0
// The job "sqlite": a trace.dat or run folder becomes a run database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/reporter.h"
#include "load_plan.h"
#include "time_bounds.h"

namespace wbscope {

struct IngestOptions : TimeBounds {
  std::string source;  // trace.dat, trace text or run folder
  std::string output;
  std::vector<std::string> globs;  // on "system:name" or "name"
  std::vector<std::string> asked;  // those of them that have to match an event of a trace.dat
  LoadPlan plan;  // what tables of events have besides the fields
  std::string formats;  // file with reference formats for text; "" = none
  bool all = false;
  bool inserts = false;  // SQLite writes all rows; else pages of events are made here
  bool force = false;
  bool no_unpack_limit = false;  // see UnpackBudget, WriteBudget
  std::optional<std::uint64_t> limit;  // at most so many rows are loaded
  unsigned threads = 0;              // 0: one for each processor
};

// Raises: Error.
void ingest_to_sqlite(const IngestOptions& options, const Reporter& reporter);

}  // namespace wbscope
