// SPDX-License-Identifier: Apache-2.0
// EventBatch: records of one event that wait to become rows of its table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "format/event_catalog.h"
#include "sink/event_table.h"
#include "sink/field_reader.h"

namespace wbscope {

struct EventBatch {
  struct Row {
    EventLead lead;
    std::uint32_t begin = 0;  // in data
    std::uint32_t bytes = 0;
  };
  std::vector<Row> rows;
  std::vector<std::byte> data;

  // The lead of the new row, to be filled in: in place, since a copy of what was
  // just written waits for it.
  EventLead& add(std::span<const std::byte> record) {
    Row& row = rows.emplace_back();
    row.begin = static_cast<std::uint32_t>(data.size());
    row.bytes = static_cast<std::uint32_t>(record.size());
    data.insert(data.end(), record.begin(), record.end());
    return row.lead;
  }
  [[nodiscard]] std::span<const std::byte> record(const Row& row) const noexcept {
    return std::span(data).subspan(row.begin, row.bytes);
  }
  // Of memory.
  [[nodiscard]] std::size_t size() const noexcept {
    return data.size() + rows.size() * sizeof(Row);
  }
  void clear() noexcept {
    rows.clear();
    data.clear();
  }
};

// All fields of a record into out, in the order of the table's columns. Out has,
// beside what FieldReader asks for, next(): the next value is another column's.
// Of a short record what there is.
template <typename Out>
void read_fields(const FieldReader<Out>& reader, const EventPlan& plan,
                 std::span<const std::byte> record, Counters& counters, Out& out) {
  if (record.size() >= plan.min_bytes) [[likely]] {
    for (const auto& field : plan.fields) {
      out.next();
      reader.read(field, record, out);
    }
  } else {
    counters.add(Counter::kShortRecords);
    for (const auto& field : plan.fields) {
      out.next();
      reader.read_part(field, record, out);
    }
  }
  if (!plan.fields.empty() && plan.fields.back().kind == FieldKind::kPrintk) {
    reader.read_printk(plan, record, out);
  }
}

}  // namespace wbscope
