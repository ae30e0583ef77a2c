// SPDX-License-Identifier: Apache-2.0
// Lead columns and INSERTs of all ev_ tables.
#include "sink/event_table.h"

#include <algorithm>

#include "base/utf8.h"

namespace wbscope {
namespace {

constexpr std::size_t kLeadColumns = 5;  // seq, ts, cpu, tid, buffer
constexpr std::size_t kMaxLinkColumns = 2;  // prev_seq, repeats_count
// SQLite takes about 160 bytes for each parameter of a statement.
constexpr std::size_t kMaxPreparedParameters = 320'000;

// As many rows as SQLite's limit of parameters allows, 32 at most.
std::size_t rows_in_batch(std::size_t columns) {
  constexpr std::size_t kMaxParameters = 32000;
  constexpr std::size_t kMaxRows = 32;
  return std::clamp<std::size_t>(kMaxParameters / (kLeadColumns + kMaxLinkColumns + columns), 1, kMaxRows);
}

}  // namespace

void create_event_table(Database& db, std::string_view table,
                        const std::vector<EventColumn>& columns, const LinkColumns& links) {
  std::string sql = "CREATE TABLE " + quoted(table) +
                    " (ts INTEGER NOT NULL, cpu INTEGER, tid INTEGER, "
                    "buffer INTEGER NOT NULL";
  if (links.has_prev_seq) sql += ", prev_seq INTEGER";
  if (links.has_repeats_count) sql += ", repeats_count INTEGER";
  for (const auto& column : columns) sql += ", " + quoted(column.name) + " " + column.type;
  // Time stamps can be equal; seq is the order of all loaded records, in any
  // table. As the rowid it takes no room of its own.
  db.exec(sql + ", seq INTEGER PRIMARY KEY)");
}

void add_event_column(Database& db, std::string_view table, const EventColumn& column) {
  db.exec("ALTER TABLE " + quoted(table) + " ADD COLUMN " + quoted(column.name) + " " +
          column.type);
}

void InsertStatements::admit(EventInsert* insert, std::size_t parameters) {
  if (parameters_ + parameters > kMaxPreparedParameters) {
    for (EventInsert* other : prepared_) {
      other->one_.reset();
      other->batch_.reset();
    }
    prepared_.clear();
    parameters_ = 0;
  }
  parameters_ += parameters;
  if (std::find(prepared_.begin(), prepared_.end(), insert) == prepared_.end()) {
    prepared_.push_back(insert);
  }
}

EventInsert::EventInsert(InsertStatements& statements, std::string_view table,
                         const std::vector<EventColumn>& columns, const LinkColumns& links)
    : statements_(statements),
      into_("INSERT INTO " + quoted(table) + " (seq, ts, cpu, tid, buffer"),
      batch_rows_(rows_in_batch(columns.size())),
      links_(links),
      columns_(static_cast<int>(kLeadColumns + (links.has_prev_seq ? 1 : 0) +
                                (links.has_repeats_count ? 1 : 0) + columns.size())) {
  if (links.has_prev_seq) into_ += ", prev_seq";
  if (links.has_repeats_count) into_ += ", repeats_count";
  for (const auto& column : columns) into_ += ", " + quoted(column.name);
  into_ += ") VALUES ";
}

EventInsert::~EventInsert() { std::erase(statements_.prepared_, this); }

std::string EventInsert::sql(std::size_t rows) const {
  std::string values = "(?";
  for (int i = 1; i < columns_; ++i) values += ",?";
  values += ')';
  std::string text = into_;
  for (std::size_t i = 0; i < rows; ++i) text += (i == 0 ? "" : ",") + values;
  return text;
}

Statement& EventInsert::prepared(bool batch) {
  std::optional<Statement>& statement = batch ? batch_ : one_;
  if (!statement) {
    const std::size_t rows = batch ? batch_rows_ : 1;
    statements_.admit(this, rows * static_cast<std::size_t>(columns_));
    statement.emplace(statements_.db_, sql(rows));
  }
  return *statement;
}

int EventInsert::bind_lead(Statement& insert, int index, const EventLead& lead) const noexcept {
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
  if (links_.has_prev_seq) {
    if (lead.prev_seq == EventLead::kNoSeq) {
      insert.bind_null(++index);
    } else {
      insert.bind(++index, lead.prev_seq);
    }
  }
  if (links_.has_repeats_count) insert.bind(++index, lead.repeats);
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
