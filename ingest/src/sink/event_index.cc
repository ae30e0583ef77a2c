// SPDX-License-Identifier: Apache-2.0
// Indexes that the reader of a database asks for.
#include "sink/event_index.h"

#include <algorithm>
#include <cctype>

namespace wbscope {
namespace {

std::vector<std::string> columns_of(Database& db, const std::string& table) {
  std::vector<std::string> columns;
  Statement info(db, "SELECT name FROM pragma_table_info(?)");
  info.bind_text(1, table);
  while (info.step()) columns.emplace_back(info.text(0));
  return columns;
}

using Columns = std::vector<std::string>;

bool has(const Columns& columns, const std::string& name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

// Whether a condition names columns of the table only.
bool is_about(const Columns& columns, const std::string& where) {
  static const Columns kWords = {"AND", "BETWEEN", "IN", "IS", "NOT", "NULL", "OR"};
  const auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  for (auto at = where.begin(); at != where.end();) {
    const auto end = std::find_if_not(at, where.end(), is_part);
    const std::string word(at, end);
    if (!word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])) &&
        !has(kWords, word) && !has(columns, word)) {
      return false;
    }
    at = end == where.end() ? end : end + 1;
  }
  return true;
}

void create_index(Database& db, const std::string& table,
                  const std::vector<std::string>& wanted, const std::string& where) {
  const Columns present = columns_of(db, table);
  if (!is_about(present, where)) return;
  std::string name = "ix_" + table;
  std::string list;
  for (const auto& column : wanted) {
    if (has(present, column)) {
      name += "__" + column;
      list += (list.empty() ? "" : ", ") + quoted(column);
    } else if (list.empty()) {
      return;
    }
  }
  db.exec("CREATE INDEX IF NOT EXISTS " + quoted(name) + " ON " + quoted(table) + " (" + list +
          ")" + (where.empty() ? "" : " WHERE " + where));
}

}  // namespace

void EventIndexes::create(Database& db, const EventCatalog& catalog,
                          const std::vector<bool>& loaded) const {
  for (const auto& [event, columns, where] : wanted_) {
    for (std::size_t i = 0; i < catalog.events.size() && i < loaded.size(); ++i) {
      const EventPlan& plan = catalog.events[i];
      const bool is_meant =
          plan.full_name() == event ||
          (plan.system.empty() && event.substr(event.find(':') + 1) == plan.name);
      if (is_meant && loaded[i] && !columns.empty()) {
        create_index(db, plan.table, columns, where);
      }
    }
  }
}

}  // namespace wbscope
