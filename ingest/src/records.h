// SPDX-License-Identifier: Apache-2.0
// The job "records": a record stream (records/record_stream.h) becomes a run
// database.
#pragma once

#include <string>

#include "base/reporter.h"
#include "load_plan.h"

namespace wbscope {

struct RecordsOptions {
  std::string stream;  // file name, or "-" for stdin
  std::string output;
  std::string trace;   // the trace that the records are of: its size and hash
  std::string folder;  // run folder whose sidecar files are loaded too, or ""
  LoadPlan plan;  // what tables of events have besides the fields
  bool force = false;
  bool no_unpack_limit = false;  // see WriteBudget
};

// Raises: Error.
void load_records(const RecordsOptions& options, const Reporter& reporter);

}  // namespace wbscope
