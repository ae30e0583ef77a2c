// SPDX-License-Identifier: Apache-2.0
// What a run folder may hold: somebody may have sent it.
#pragma once

#include <string>

namespace wbscope {

// Whether wbscope reads a file of this name in a run folder: a trace, what a
// killed recorder left, or a file that lies beside it.
[[nodiscard]] bool is_read_in_folder(const std::string& name);

// Why the file of this path is no plain file of its folder: "a FIFO", "a
// symbolic link to X, outside of the folder". Empty when it is one, or a folder.
[[nodiscard]] std::string strangeness(const std::string& path);

// Raises: Error (exit 3) that names a file which is read and is strange.
void check_run_folder(const std::string& folder);

}  // namespace wbscope
