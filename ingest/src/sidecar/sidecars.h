// SPDX-License-Identifier: Apache-2.0
// Loads the /proc files and tool outputs of a run folder.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "sink/database.h"

namespace wbscope {

// Whether a file of this name says something of a run.
[[nodiscard]] bool is_sidecar(const std::string& name);

// Loads every file of folder that lies beside the trace. A file that cannot
// be understood in full is loaded as far as it goes, has status "partial" or
// "failed" in sidecar_file, and gives a warning.
// Raises: Error only when the database cannot be written.
std::vector<Message> load_sidecars(Database& db, const std::string& folder);

}  // namespace wbscope
