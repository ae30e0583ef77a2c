// SPDX-License-Identifier: Apache-2.0
// A table that waits outside the file.
#include "sink/staged_table.h"

#include <utility>

namespace wbscope {

StagedTable::StagedTable(Database& db, std::string name, std::string definition, bool is_staged)
    : db_(db),
      name_(std::move(name)),
      definition_(std::move(definition)),
      is_staged_(is_staged) {
  create(is_staged ? "temp" : "main");
}

void StagedTable::create(std::string_view schema) {
  db_.exec("CREATE TABLE IF NOT EXISTS " + std::string(schema) + "." + name_ + " " + definition_);
}

void StagedTable::publish() {
  if (!std::exchange(is_staged_, false)) return;
  create("main");
  db_.exec("INSERT INTO main." + name_ + " SELECT * FROM temp." + name_ + " ORDER BY 1, 2");
  db_.exec("DROP TABLE temp." + name_);
}

}  // namespace wbscope
