// SPDX-License-Identifier: Apache-2.0
// The job "sqlite": a trace.dat or run folder becomes a run database.
#pragma once

#include <string>
#include <vector>

#include "base/reporter.h"

namespace wbscope {

struct IngestOptions {
  std::string source;  // trace.dat or run folder
  std::string output;
  std::vector<std::string> globs;  // on "system:name" or "name"
  bool all = false;
  bool force = false;
  unsigned threads = 0;  // 0: one for each processor
};

// Raises: Error.
void ingest_to_sqlite(const IngestOptions& options, const Reporter& reporter);

}  // namespace wbscope
