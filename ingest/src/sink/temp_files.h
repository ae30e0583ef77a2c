// SPDX-License-Identifier: Apache-2.0
// The temporary files that SQLite makes for sorts and temporary tables: where
// they could not be written. SQLite itself does not tell, and its errors are the
// same as those of the database's own folder.
#pragma once

#include <optional>
#include <string>

namespace wbscope {

struct TempProblem {
  std::string folder;
  std::string text;  // of the system: "No space left on device"
  std::string have;  // what room there was; may be empty
};

// Before the first statement of the process; later calls do nothing.
void watch_temp_files() noexcept;

// Why the last statement of this thread failed, where it was a temporary file;
// result: the extended result code of SQLite. A problem is told once.
[[nodiscard]] std::optional<TempProblem> take_temp_problem(int result);

}  // namespace wbscope
