// SPDX-License-Identifier: Apache-2.0
// EventWriter: records of wanted events into their ev_ tables, raw values
// under the kernel's names.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/counters.h"
#include "format/event_catalog.h"
#include "sink/event_table.h"

namespace wbscope {

class EventWriter {
 public:
  // Makes the table of each wanted event.
  EventWriter(Database& db, const EventCatalog& catalog, const std::vector<bool>& wanted,
              ByteOrder order);

  // record has at least the event's min_bytes. Rows are written in batches,
  // the last ones by finish().
  void write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
             std::uint32_t buffer, std::span<const std::byte> record);

  void finish();

  [[nodiscard]] const std::vector<std::uint64_t>& loaded() const noexcept { return loaded_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  struct Row {
    EventLead lead;
    std::size_t begin;
    std::size_t bytes;
  };
  struct Table {
    std::unique_ptr<EventInsert> insert;
    std::vector<Row> rows;
    std::vector<std::byte> data;  // the records of rows
  };

  void flush(std::uint32_t event);
  void bind_field(Statement& insert, int index, const FieldPlan& field,
                  std::span<const std::byte> record);
  void bind_utf8(Statement& insert, int index, std::string_view text);
  void bind_array(Statement& insert, int index, const FieldPlan& field,
                  std::span<const std::byte> bytes);

  const EventCatalog& catalog_;
  ByteOrder order_;
  std::vector<Table> tables_;
  std::vector<std::uint64_t> loaded_;
  std::int64_t seq_ = 0;
  Counters counters_;
  BoundTexts texts_;
};

}  // namespace wbscope
