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
  // event: "system:name"; columns: as its table has them, from the first on.
  void add(std::string event, std::vector<std::string> columns) {
    wanted_.emplace_back(std::move(event), std::move(columns));
  }

  // Makes those of loaded events. A column that a kernel does not record is
  // left out, and an index without its first column is not made.
  void create(Database& db, const EventCatalog& catalog, const std::vector<bool>& loaded) const;

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> wanted_;
};

}  // namespace wbscope
