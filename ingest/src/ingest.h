// SPDX-License-Identifier: Apache-2.0
// The job "sqlite": a trace.dat or run folder becomes a run database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/reporter.h"
#include "sink/event_index.h"
#include "sink/previous_row.h"

namespace wbscope {

// A border of the part that is read.
struct TimeBound {
  std::int64_t ns = 0;
  bool after_start = false;  // counted from the first record, not from the clock's zero
};

struct IngestOptions {
  std::string source;  // trace.dat, trace text or run folder
  std::string output;
  std::vector<std::string> globs;  // on "system:name" or "name"
  PreviousChoice previous;         // events with a column prev_seq
  EventIndexes indexes;            // of event tables
  std::string formats;  // file with reference formats for text; "" = none
  bool all = false;
  bool force = false;
  std::optional<TimeBound> from;     // records at or after it
  std::optional<TimeBound> to;       // and before this
  std::optional<std::uint64_t> limit;  // at most so many rows are loaded
  unsigned threads = 0;              // 0: one for each processor
};

// Raises: Error.
void ingest_to_sqlite(const IngestOptions& options, const Reporter& reporter);

}  // namespace wbscope
