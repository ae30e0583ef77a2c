// SPDX-License-Identifier: Apache-2.0
// StagedTable: a table that waits outside the file while others write pages to it.
#pragma once

#include <string>
#include <string_view>

#include "sink/database.h"

namespace wbscope {

class StagedTable {
 public:
  // Makes the table, unless it is there. definition: what follows its name.
  // is_staged: as a temporary one of the same name, which SQLite finds first.
  StagedTable(Database& db, std::string name, std::string definition, bool is_staged);

  // Makes the table in the file, with all rows. Once; nothing where it is there.
  void publish();

 private:
  void create(std::string_view schema);

  Database& db_;
  std::string name_;
  std::string definition_;
  bool is_staged_;
};

}  // namespace wbscope
