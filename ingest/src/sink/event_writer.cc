// SPDX-License-Identifier: Apache-2.0
// Records of wanted events into their ev_ tables.
#include "sink/event_writer.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace wbscope {
namespace {

const char* column_type(FieldKind kind) {
  switch (kind) {
    case FieldKind::kInteger:
      return "INTEGER";
    case FieldKind::kBytes:
      return "BLOB";
    default:
      return "TEXT";
  }
}

std::vector<EventColumn> columns_of(const EventPlan& event) {
  std::vector<EventColumn> columns;
  for (const auto& field : event.fields) columns.push_back({field.column, column_type(field.kind)});
  return columns;
}

std::int64_t read_integer(const std::byte* data, std::uint32_t bytes, bool is_signed,
                          ByteOrder order) noexcept {
  switch (bytes) {
    case 1: {
      const auto v = load<std::uint8_t>(data, order);
      return is_signed ? static_cast<std::int8_t>(v) : std::int64_t{v};
    }
    case 2: {
      const auto v = load<std::uint16_t>(data, order);
      return is_signed ? static_cast<std::int16_t>(v) : std::int64_t{v};
    }
    case 4: {
      const auto v = load<std::uint32_t>(data, order);
      return is_signed ? static_cast<std::int32_t>(v) : std::int64_t{v};
    }
    default:
      // Unsigned values of 2^63 and more come out negative: SQLite has no
      // unsigned integers, and the 64 bits are kept.
      return load<std::int64_t>(data, order);
  }
}

std::string_view until_nul(std::span<const std::byte> bytes) noexcept {
  const auto text = as_text(bytes);
  return text.substr(0, text.find('\0'));
}

}  // namespace

EventWriter::EventWriter(Database& db, const EventCatalog& catalog,
                         const std::vector<bool>& wanted, ByteOrder order)
    : catalog_(catalog),
      order_(order),
      tables_(catalog.events.size()),
      loaded_(catalog.events.size()) {
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    if (!wanted[i]) continue;
    const auto columns = columns_of(catalog.events[i]);
    create_event_table(db, catalog.events[i].table, columns);
    tables_[i].insert = std::make_unique<EventInsert>(db, catalog.events[i].table, columns);
  }
}

void EventWriter::bind_utf8(Statement& insert, int index, std::string_view text) {
  texts_.bind_utf8(insert, index, text, counters_);
}

// Integers as "[1,2,3]", which json_each() of SQLite can take apart.
void EventWriter::bind_array(Statement& insert, int index, const FieldPlan& field,
                             std::span<const std::byte> bytes) {
  if (field.element_bytes != 2 && field.element_bytes != 4 && field.element_bytes != 8) {
    insert.bind_blob(index, bytes.data(), bytes.size());
    return;
  }
  std::string& out = texts_.scratch();
  out += '[';
  for (std::size_t at = 0; at + field.element_bytes <= bytes.size(); at += field.element_bytes) {
    if (at > 0) out += ',';
    const std::int64_t value =
        read_integer(bytes.data() + at, field.element_bytes, field.is_signed, order_);
    char digits[24];
    const auto end = field.is_signed || field.element_bytes < 8
                         ? std::to_chars(digits, digits + sizeof(digits), value)
                         : std::to_chars(digits, digits + sizeof(digits),
                                         static_cast<std::uint64_t>(value));
    out.append(digits, end.ptr);
  }
  out += ']';
  insert.bind_text(index, out);
}

void EventWriter::bind_field(Statement& insert, int index, const FieldPlan& field,
                             std::span<const std::byte> record) {
  switch (field.kind) {
    case FieldKind::kInteger:
      insert.bind(index, read_integer(record.data() + field.offset, field.bytes, field.is_signed,
                                      order_));
      return;
    case FieldKind::kText:
      bind_utf8(insert, index, until_nul(record.subspan(field.offset, field.bytes)));
      return;
    case FieldKind::kRestText:
      bind_utf8(insert, index, until_nul(record.subspan(field.offset)));
      return;
    case FieldKind::kArray:
      bind_array(insert, index, field, record.subspan(field.offset, field.bytes));
      return;
    case FieldKind::kBytes: {
      const auto bytes = field.bytes == 0 ? record.subspan(field.offset)
                                          : record.subspan(field.offset, field.bytes);
      insert.bind_blob(index, bytes.data(), bytes.size());
      return;
    }
    case FieldKind::kDynText:
    case FieldKind::kRelText:
    case FieldKind::kDynArray:
    case FieldKind::kRelArray:
      break;
  }
  // include/trace/trace_events.h: length in the high half, offset in the low,
  // from the record's start (__data_loc) or the field's end (__rel_loc).
  const auto word = load<std::uint32_t>(record.data() + field.offset, order_);
  const bool relative =
      field.kind == FieldKind::kRelText || field.kind == FieldKind::kRelArray;
  const std::size_t start = (word & 0xffffu) + (relative ? field.offset + field.bytes : 0);
  const std::size_t length = word >> 16;
  if (start > record.size() || length > record.size() - start) {
    counters_.add(Counter::kBadDynamicFields);
    insert.bind_null(index);
    return;
  }
  const auto bytes = record.subspan(start, length);
  if (field.kind == FieldKind::kDynText || field.kind == FieldKind::kRelText) {
    bind_utf8(insert, index, until_nul(bytes));
  } else {
    bind_array(insert, index, field, bytes);
  }
}

void EventWriter::write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
                        std::uint32_t buffer, std::span<const std::byte> record) {
  Table& table = tables_[event];
  table.rows.push_back({
      .lead = {.seq = ++seq_, .ts = ts, .cpu = cpu, .tid = tid, .buffer = buffer},
      .begin = table.data.size(),
      .bytes = record.size()});
  table.data.insert(table.data.end(), record.begin(), record.end());
  ++loaded_[event];
  if (table.rows.size() == table.insert->batch_rows()) flush(event);
}

void EventWriter::flush(std::uint32_t event) {
  Table& table = tables_[event];
  if (table.rows.empty()) return;
  const EventPlan& plan = catalog_.events[event];
  texts_.clear();
  table.insert->run(table.rows, [&](Statement& insert, int index, const Row& row) {
    const auto record = std::span(table.data).subspan(row.begin, row.bytes);
    for (const auto& field : plan.fields) bind_field(insert, ++index, field, record);
  });
  table.rows.clear();
  table.data.clear();
}

void EventWriter::finish() {
  for (std::uint32_t event = 0; event < tables_.size(); ++event) flush(event);
}

}  // namespace wbscope
