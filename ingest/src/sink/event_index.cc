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

bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
      return true;
    }
  }
  return false;
}

void create_index(Database& db, const std::string& table,
                  const std::vector<std::string>& wanted, const std::string& where) {
  const auto present = columns_of(db, table);
  std::string name = "ix_" + table;
  std::string list;
  for (const auto& column : wanted) {
    if (std::find(present.begin(), present.end(), column) != present.end()) {
      name += "__" + column;
      list += (list.empty() ? "" : ", ") + quoted(column);
    } else if (list.empty() || has_word(where, column)) {
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
