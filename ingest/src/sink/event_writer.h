// SPDX-License-Identifier: Apache-2.0
// EventWriter: records of wanted events into their ev_ tables, raw values
// under the kernel's names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/counters.h"
#include "format/event_catalog.h"
#include "format/printk_text.h"
#include "sink/event_batch.h"
#include "sink/event_pages.h"
#include "sink/event_table.h"
#include "sink/previous_row.h"
#include "sink/symbols.h"
#include "sink/task_counts.h"
#include "sink/time_index.h"

namespace wbscope {

class EventWriter {
 public:
  // Makes the table of each wanted event. printk: formats of binary printk;
  // previous: the events with a column prev_seq or repeats_count, whose
  // rows are counted by task too. pages: rows go straight into pages of the
  // file; else SQLite inserts them. Pre, for pages: db has begun a transaction,
  // which is committed here, and another one is begun for what follows finish().
  EventWriter(Database& db, const EventCatalog& catalog, const std::vector<bool>& wanted,
              ByteOrder order, PrintkFormats printk = {}, const PreviousChoice& previous = {},
              const std::optional<PagesOf>& pages = std::nullopt);

  // Fields that a short record does not have become NULL. Rows are written in
  // batches, the last ones by finish().
  void write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
             std::uint32_t buffer, std::span<const std::byte> record);

  void finish();

  [[nodiscard]] const std::vector<std::uint64_t>& loaded() const noexcept { return loaded_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  // Addresses of kernel code in the rows so far.
  [[nodiscard]] const AddressSet& addresses() const noexcept { return addresses_; }

 private:
  // For repeats_count of another event.
  struct Context {
    std::uint32_t to;
    std::vector<FieldPlan> fields;
    bool has_fields;  // wanted; a trace may not have them
  };
  struct Table {
    std::unique_ptr<EventInsert> insert;
    EventBatch batch;
    LinkColumns links;
    std::shared_ptr<PreviousRow> previous;
    std::vector<FieldPlan> repeats;  // the fields that repeats_count is about
    std::vector<Context> contexts;   // what this event is to others
    std::uint32_t task_counts = TaskCounts::kNotCounted;
  };

  void begin_pages(const PagesOf& where, const std::vector<bool>& wanted);
  [[nodiscard]] bool is_full(const Table& table) const noexcept;
  void add_context(const PreviousChoice& previous, const std::vector<bool>& wanted);
  [[nodiscard]] std::string_view values_of(const std::vector<FieldPlan>& fields,
                                           std::span<const std::byte> record);
  void flush(std::uint32_t event);
  void insert(const EventPlan& plan, Table& table);
  void flush_all();

  Database& db_;
  InsertStatements statements_;
  TimeIndex times_;
  TaskCounts task_counts_;
  const EventCatalog& catalog_;
  ByteOrder order_;
  PrintkFormats printk_;
  AddressSet addresses_;
  std::vector<Table> tables_;
  std::size_t pending_bytes_ = 0;        // in the rows of all tables
  std::vector<std::uint64_t> loaded_;
  std::int64_t seq_ = 0;
  Counters counters_;
  BoundTexts texts_;
  std::string values_bytes_;
  std::unique_ptr<EventPages> pages_;
};

}  // namespace wbscope
