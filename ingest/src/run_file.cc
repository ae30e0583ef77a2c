// SPDX-License-Identifier: Apache-2.0
// A run database: temporary file, one transaction, rename.
#include "run_file.h"

#include <filesystem>

#include "base/interrupt.h"
#include "sidecar/sidecars.h"

namespace wbscope {

RunFile::RunFile(const std::string& path, bool force)
    : output_(path, force), db_(output_.temp_path(), output_.path(), Database::Mode::kCreate) {
  begin_new_file(db_);
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
