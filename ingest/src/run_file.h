// SPDX-License-Identifier: Apache-2.0
// RunFile: a run database while it is made; under its name only when whole.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"
#include "base/output_file.h"
#include "base/write_budget.h"
#include "sink/database.h"

namespace wbscope {

class RunFile {
 public:
  // input: the trace that is read; is_lifted: without the limits of WriteBudget.
  // Raises: Error (exit 2) when path is there and not to be replaced; exit 5
  // when nothing can be written beside it.
  RunFile(const std::string& path, bool force, const InputFile& input, bool is_lifted);

  [[nodiscard]] Database& db() noexcept { return db_; }
  [[nodiscard]] const std::string& path() const noexcept { return output_.path(); }
  // How long the database may get.
  [[nodiscard]] const WriteBudget& budget() const noexcept { return budget_; }
  // Where the database lies while it is made.
  [[nodiscard]] const std::string& temp_path() const noexcept { return output_.temp_path(); }

  // Loads the files that lie beside the trace in source, where that is a
  // folder, and gives the database its name. Returns what there is to say of
  // these files.
  [[nodiscard]] std::vector<Message> finish(const std::string& source);

 private:
  OutputFile output_;
  WriteBudget budget_;
  Database db_;
};

}  // namespace wbscope
