// SPDX-License-Identifier: Apache-2.0
// The job "sqlite" for traces that are text.
#pragma once

#include "base/input_file.h"
#include "ingest.h"

namespace wbscope {

[[nodiscard]] bool is_text(const InputFile& file);

// Raises: Error.
void ingest_text(const InputFile& file, const IngestOptions& options, const Reporter& reporter);

}  // namespace wbscope
