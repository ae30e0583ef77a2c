// SPDX-License-Identifier: Apache-2.0
// Lead columns and INSERTs of all ev_ tables.
#include "sink/event_table.h"

#include <algorithm>

#include "base/utf8.h"

namespace wbscope {
namespace {

constexpr std::size_t kLeadColumns = 5;  // seq, ts, cpu, tid, buffer

// As many rows as SQLite's limit of parameters allows, 32 at most.
std::size_t rows_in_batch(std::size_t columns) {
  constexpr std::size_t kMaxParameters = 32000;
  constexpr std::size_t kMaxRows = 32;
  return std::clamp<std::size_t>(kMaxParameters / (kLeadColumns + columns), 1, kMaxRows);
}

std::string insert_rows(std::string_view table, const std::vector<EventColumn>& columns,
                        std::size_t rows) {
  std::string sql = "INSERT INTO " + quoted(table) + " (seq, ts, cpu, tid, buffer";
  std::string values = "(?,?,?,?,?";
  for (const auto& column : columns) {
    sql += ", " + quoted(column.name);
    values += ",?";
  }
  sql += ") VALUES ";
  for (std::size_t i = 0; i < rows; ++i) sql += (i == 0 ? "" : ",") + values + ")";
  return sql;
}

}  // namespace

void create_event_table(Database& db, std::string_view table,
                        const std::vector<EventColumn>& columns) {
  std::string sql = "CREATE TABLE " + quoted(table) +
                    " (ts INTEGER NOT NULL, cpu INTEGER, tid INTEGER, "
                    "buffer INTEGER NOT NULL";
  for (const auto& column : columns) sql += ", " + quoted(column.name) + " " + column.type;
  // Time stamps can be equal; seq is the order of all loaded records, in any
  // table. As the rowid it takes no room of its own.
  db.exec(sql + ", seq INTEGER PRIMARY KEY)");
}

void add_event_column(Database& db, std::string_view table, const EventColumn& column) {
  db.exec("ALTER TABLE " + quoted(table) + " ADD COLUMN " + quoted(column.name) + " " +
          column.type);
}

EventInsert::EventInsert(Database& db, std::string_view table,
                         const std::vector<EventColumn>& columns)
    : batch_rows_(rows_in_batch(columns.size())),
      columns_(static_cast<int>(kLeadColumns + columns.size())),
      one_(db, insert_rows(table, columns, 1)),
      batch_(db, insert_rows(table, columns, batch_rows_)) {}

int EventInsert::bind_lead(Statement& insert, int index, const EventLead& lead) noexcept {
  insert.bind(++index, lead.seq);
  insert.bind(++index, lead.ts);
  // The text of a kernel log tells neither.
  if (lead.cpu == EventLead::kNoCpu) {
    insert.bind_null(++index);
  } else {
    insert.bind(++index, std::int64_t{lead.cpu});
  }
  if (lead.tid == EventLead::kNoTid) {
    insert.bind_null(++index);
  } else {
    insert.bind(++index, std::int64_t{lead.tid});
  }
  insert.bind(++index, std::int64_t{lead.buffer});
  return index;
}

std::string& BoundTexts::scratch() {
  if (used_ == texts_.size()) texts_.push_back(std::make_unique<std::string>());
  std::string& text = *texts_[used_++];
  text.clear();
  return text;
}

void BoundTexts::bind_utf8(Statement& insert, int index, std::string_view text,
                           Counters& counters) {
  if (is_utf8(text)) {
    insert.bind_text(index, text);
    return;
  }
  counters.add(Counter::kReplacedText);
  std::string& clean = scratch();
  clean = replace_invalid_utf8(text);
  insert.bind_text(index, clean);
}

}  // namespace wbscope
