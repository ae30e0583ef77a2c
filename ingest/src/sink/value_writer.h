// SPDX-License-Identifier: Apache-2.0
// ValueWriter: records that come as named values (text, Perfetto) into the
// same ev_ tables that EventWriter makes from binary records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/counters.h"
#include "base/names.h"
#include "format/event_catalog.h"
#include "pipeline/cpu_stream.h"
#include "sink/event_table.h"
#include "sink/previous_row.h"
#include "sink/run_writer.h"
#include "sink/task_counts.h"
#include "sink/time_index.h"

namespace wbscope {

struct ValueField {
  std::string name;  // the kernel's
  std::string type;  // C type if known, else ""
};

// NULL, integer, real, text, blob. Texts and blobs are copied.
using Value = std::variant<std::monostate, std::int64_t, double, std::string_view,
                           std::span<const std::byte>>;

class ValueWriter {
 public:
  using Cell = std::pair<std::uint32_t, Value>;  // field and its value

  // What event() and field() return when a hostile file has named too many;
  // write() and count() only count its records, all events together.
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // previous: the events with a column prev_seq or repeats_count, whose rows are counted by task
  // too.
  explicit ValueWriter(Database& db, PreviousChoice previous = {})
      : db_(db), statements_(db), times_(db), task_counts_(db), previous_(std::move(previous)) {}

  // Finds an event, or declares it. system is "" when the source does not tell.
  [[nodiscard]] std::uint32_t event(std::string_view system, std::string_view name);
  // Finds a field of the event by its name, or declares it: a column. The type
  // of the first declaration counts.
  [[nodiscard]] std::uint32_t field(std::uint32_t event, const ValueField& field);
  // What tables event_format and enum_label tell of the event.
  void describe(std::uint32_t event, std::string format, std::vector<EnumLabel> labels);

  // A record to be loaded. Fields that cells does not name are NULL. The first
  // record makes the table; seq is the order of the calls.
  void write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
             std::uint32_t buffer, std::span<const Cell> cells);
  // The same with a seq that the source has: records may then come event by
  // event. It has to grow from record to record of an event.
  void write_at(std::int64_t seq, std::uint32_t event, std::int64_t ts, std::uint32_t cpu,
                std::int32_t tid, std::uint32_t buffer, std::span<const Cell> cells);
  // A record that is not loaded: counted only.
  void count(std::uint32_t event, std::int64_t ts, std::int32_t tid);
  // Many of them, of one task.
  void count(std::uint32_t event, std::int32_t tid, const TaskSpan& records);

  // The name of a task; the last one counts.
  void name_task(std::int32_t tid, std::string_view comm);

  // Rows are written in batches, the last ones here.
  void finish();

  // After finish(), of rows that came one event after the other: which row of
  // its group is before each.
  void link_groups();

  // After finish(), for RunWriter.
  [[nodiscard]] EventCatalog catalog() const;
  [[nodiscard]] std::vector<bool> loaded_events() const;
  [[nodiscard]] EventTotals totals() const;
  // All records, those of events over the cap too.
  [[nodiscard]] std::uint64_t counted() const;
  [[nodiscard]] std::map<std::int32_t, TaskSpan> tasks() const;
  [[nodiscard]] const std::map<std::int32_t, std::string>& task_names() const noexcept {
    return task_names_;
  }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  // A value of a row that waits. Texts and blobs lie in Event::bytes.
  struct Stored {
    enum class Kind : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };
    Kind kind = Kind::kNull;
    union {
      std::int64_t integer = 0;
      double real;
      struct {
        std::uint32_t begin;
        std::uint32_t size;
      } bytes;
    };
  };
  struct Row {
    EventLead lead;
    std::size_t first;    // in Event::stored
    std::uint32_t count;  // fields that were declared when it was written
  };
  struct Event {
    std::string system;
    std::string name;
    std::string table;
    std::string format;
    std::vector<EnumLabel> labels;
    std::vector<FieldPlan> fields;
    std::unordered_map<std::string, std::uint32_t> by_name;
    NamesTaken columns = lead_column_names();
    std::size_t columns_made = 0;  // of fields, in the table
    std::unique_ptr<EventInsert> insert;
    std::vector<Row> rows;
    std::vector<Stored> stored;
    std::vector<char> bytes;
    std::shared_ptr<PreviousRow> previous;
    std::vector<std::string> repeats;  // the fields that repeats_count is about
    std::vector<std::pair<Event*, std::vector<std::string>>> contexts;  // what it is to others
    std::uint32_t task_counts = TaskCounts::kNotCounted;
    std::uint64_t counted = 0;
    std::uint64_t loaded = 0;
    std::size_t batch_rows = 32;  // the table's own once it is made
  };

  // Lets the other event be context of this one, if it is.
  void add_context(Event& other, Event& event) const;
  [[nodiscard]] std::string_view values_of(const Event& event,
                                           const std::vector<std::string>& names,
                                           std::span<const Cell> cells);
  [[nodiscard]] LinkColumns links(const Event& event) const;
  void store(Event& event, Stored& place, FieldPlan& field, const Value& value);
  void prepare(Event& event);
  void flush(Event& event);
  void note_task(std::int32_t tid, const TaskSpan& records);

  Database& db_;
  InsertStatements statements_;
  TimeIndex times_;
  TaskCounts task_counts_;
  PreviousChoice previous_;
  PreviousRows previous_rows_;
  std::vector<std::unique_ptr<Event>> events_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  NamesTaken tables_;
  std::size_t fields_declared_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::size_t tables_read_ = 0;  // by SQLite, for columns that came late
  std::int64_t seq_ = 0;
  std::unordered_map<std::int32_t, TaskSpan> tasks_;
  std::map<std::int32_t, std::string> task_names_;
  BoundTexts texts_;
  std::string values_bytes_;
  Counters counters_;
};

}  // namespace wbscope
