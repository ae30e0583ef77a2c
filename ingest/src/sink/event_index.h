// SPDX-License-Identifier: Apache-2.0
// Indexes that the reader of a database asks for: it knows which rows its
// queries look up and group.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "format/event_catalog.h"
#include "sink/database.h"

namespace wbscope {

class EventIndexes {
 public:
  // event: "system:name"; columns: as its table has them, from the first on;
  // where: of which rows, in SQL: columns, numbers and the words AND, BETWEEN,
  // IN, IS, NOT, NULL and OR; empty: of all.
  void add(std::string event, std::vector<std::string> columns, std::string where = {}) {
    wanted_.push_back({std::move(event), std::move(columns), std::move(where)});
  }

  // Makes those of loaded events. A column that a kernel does not record is
  // left out, and an index without its first column is not made; one of some
  // rows only with all columns that `where` names.
  void create(Database& db, const EventCatalog& catalog, const std::vector<bool>& loaded) const;

 private:
  struct Wanted {
    std::string event;
    std::vector<std::string> columns;
    std::string where;
  };
  std::vector<Wanted> wanted_;
};

}  // namespace wbscope
