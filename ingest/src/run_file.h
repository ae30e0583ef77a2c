// SPDX-License-Identifier: Apache-2.0
// RunFile: a run database while it is made; under its name only when whole.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/output_file.h"
#include "sink/database.h"

namespace wbscope {

class RunFile {
 public:
  // Raises: Error (exit 2) when path is there and not to be replaced; exit 5
  // when nothing can be written beside it.
  RunFile(const std::string& path, bool force);

  [[nodiscard]] Database& db() noexcept { return db_; }
  [[nodiscard]] const std::string& path() const noexcept { return output_.path(); }
  // Where the database lies while it is made.
  [[nodiscard]] const std::string& temp_path() const noexcept { return output_.temp_path(); }

  // Loads the files that lie beside the trace in source, where that is a
  // folder, and gives the database its name. Returns what there is to say of
  // these files.
  [[nodiscard]] std::vector<Message> finish(const std::string& source);

 private:
  OutputFile output_;
  Database db_;
};

}  // namespace wbscope
