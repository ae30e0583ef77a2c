// SPDX-License-Identifier: Apache-2.0
// The part that all ev_ tables have in common: lead columns and INSERTs of
// many rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "sink/database.h"

namespace wbscope {

struct EventColumn {
  std::string name;
  const char* type;  // of SQLite; "" keeps each value's own
};

// What every row starts with.
struct EventLead {
  static constexpr std::uint32_t kNoCpu = UINT32_MAX;  // not told: NULL
  static constexpr std::int32_t kNoTid = INT32_MIN;
  static constexpr std::int64_t kNoSeq = 0;         // no row before: NULL
  static constexpr std::int64_t kForgottenSeq = -1;  // too many tasks: not known

  std::int64_t seq = 0;
  std::int64_t ts = 0;
  std::uint32_t cpu = 0;
  std::int32_t tid = 0;
  std::uint32_t buffer = 0;
  // Stored where the table has the columns.
  std::int64_t prev_seq = kNoSeq;
  std::int64_t repeats = 0;
};

// What follows the column buffer.
struct LinkColumns {
  bool has_prev_seq = false;
  bool has_repeats_count = false;
};

void create_event_table(Database& db, std::string_view table,
                        const std::vector<EventColumn>& columns, const LinkColumns& links);
void add_event_column(Database& db, std::string_view table, const EventColumn& column);

class EventInsert;

// How many INSERTs are prepared at a time: a trace has formats of 2,000 events
// and more, and each statement takes memory by its parameters.
class InsertStatements {
 public:
  explicit InsertStatements(Database& db) : db_(db) {}

 private:
  friend class EventInsert;
  // Makes room for so many parameters by dropping all statements.
  void admit(EventInsert* insert, std::size_t parameters);

  Database& db_;
  std::vector<EventInsert*> prepared_;
  std::size_t parameters_ = 0;
};

// Rows wait for a batch: one INSERT of many rows opens its table once. The
// statements are prepared when they are first needed.
class EventInsert {
 public:
  EventInsert(InsertStatements& statements, std::string_view table,
              const std::vector<EventColumn>& columns, const LinkColumns& links);
  ~EventInsert();
  EventInsert(const EventInsert&) = delete;
  EventInsert& operator=(const EventInsert&) = delete;

  [[nodiscard]] std::size_t batch_rows() const noexcept { return batch_rows_; }

  // rows: a container of T with a member lead. bind_fields(statement, index,
  // row) binds the columns after index, all of them.
  template <typename Rows, typename BindFields>
  void run(const Rows& rows, BindFields&& bind_fields) {
    const bool batch = rows.size() == batch_rows_;
    Statement& insert = prepared(batch);
    int index = 0;
    for (const auto& row : rows) {
      bind_fields(insert, bind_lead(insert, index, row.lead), row);
      index += columns_;
      if (batch) continue;
      insert.run();
      index = 0;
    }
    if (batch) insert.run();
  }

 private:
  friend class InsertStatements;
  int bind_lead(Statement& insert, int index, const EventLead& lead) const noexcept;
  [[nodiscard]] Statement& prepared(bool batch);
  [[nodiscard]] std::string sql(std::size_t rows) const;

  InsertStatements& statements_;
  std::string into_;    // INSERT INTO table (columns)
  std::size_t batch_rows_;
  LinkColumns links_;
  int columns_;
  std::optional<Statement> one_;
  std::optional<Statement> batch_;
};

// Texts bound to an INSERT: SQLite wants UTF-8, and bound text must live until
// the statement has run.
class BoundTexts {
 public:
  void bind_utf8(Statement& insert, int index, std::string_view text, Counters& counters);
  // An empty string that lives until clear().
  [[nodiscard]] std::string& scratch();
  void clear() noexcept { used_ = 0; }

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
  std::size_t used_ = 0;
};

}  // namespace wbscope
