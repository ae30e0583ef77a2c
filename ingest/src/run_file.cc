// SPDX-License-Identifier: Apache-2.0
// A run database: temporary file, one transaction, rename.
#include "run_file.h"

#include <filesystem>

#include "base/interrupt.h"
#include "sidecar/sidecars.h"

namespace wbscope {

RunFile::RunFile(const std::string& path, bool force, const InputFile& input, bool is_lifted)
    : output_(path, force),
      budget_(input.path(), lift_limit(input.path())),
      db_(output_.temp_path(), output_.path(), Database::Mode::kCreate) {
  begin_new_file(db_);
  if (is_lifted) budget_.lift();
  budget_.add_read(input.size());
  db_.limit_size(budget_);
}

std::vector<Message> RunFile::finish(const std::string& source) {
  std::vector<Message> warnings;
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) warnings = load_sidecars(db_, source);
  throw_if_interrupted();
  db_.exec("COMMIT");
  db_.close();
  output_.commit();
  return warnings;
}

}  // namespace wbscope
