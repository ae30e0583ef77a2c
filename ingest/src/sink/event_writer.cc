// SPDX-License-Identifier: Apache-2.0
// Records of wanted events into their ev_ tables.
#include "sink/event_writer.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "sink/field_text.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxPendingBytes = 16u << 20;

const char* column_type(const FieldPlan& field) {
  if (field.rendering != Rendering::kPlain) return "TEXT";
  switch (field.kind) {
    case FieldKind::kInteger:
      return "INTEGER";
    case FieldKind::kBytes:
    case FieldKind::kDynBytes:
    case FieldKind::kRelBytes:
      return "BLOB";
    default:
      return "TEXT";
  }
}

std::vector<EventColumn> columns_of(const EventPlan& event) {
  std::vector<EventColumn> columns;
  for (const auto& field : event.fields) columns.push_back({field.column, column_type(field)});
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
                         const std::vector<bool>& wanted, ByteOrder order, PrintkFormats printk,
                         const PreviousChoice& previous)
    : statements_(db),
      catalog_(catalog),
      order_(order),
      printk_(std::move(printk)),
      tables_(catalog.events.size()),
      loaded_(catalog.events.size()) {
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    if (!wanted[i]) continue;
    const auto columns = columns_of(catalog.events[i]);
    PreviousRow& row = tables_[i].previous;
    row = PreviousRow(previous.of(catalog.events[i].system, catalog.events[i].name));
    create_event_table(db, catalog.events[i].table, columns, row.is_kept());
    tables_[i].insert = std::make_unique<EventInsert>(statements_, catalog.events[i].table,
                                                      columns, row.is_kept());
  }
}

void EventWriter::bind_utf8(Statement& insert, int index, std::string_view text) {
  texts_.bind_utf8(insert, index, text, counters_);
}

// Integers as "[1,2,3]", which json_each() of SQLite can take apart.
void EventWriter::bind_array(Statement& insert, int index, const FieldPlan& field,
                             std::span<const std::byte> bytes) {
  if (field.rendering != Rendering::kPlain) return bind_bytes(insert, index, field, bytes);
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
    if (field.is_symbol) addresses_.insert(static_cast<std::uint64_t>(value));
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

void EventWriter::bind_bytes(Statement& insert, int index, const FieldPlan& field,
                             std::span<const std::byte> bytes) {
  const MaskLayout layout{.order = order_, .long_bytes = catalog_.page.commit_bytes};
  if (field.rendering == Rendering::kPlain) {
    insert.bind_blob(index, bytes.data(), bytes.size());
    return;
  }
  std::string& text = texts_.scratch();
  switch (field.rendering) {
    case Rendering::kBitmask:
      append_bitmask(bytes, layout, text);
      break;
    case Rendering::kCpumask:
      append_cpumask(bytes, layout, text);
      break;
    default:
      if (append_sockaddr(bytes, order_, text)) break;
      insert.bind_blob(index, bytes.data(), bytes.size());
      return;
  }
  insert.bind_text(index, text);
}

void EventWriter::bind_field(Statement& insert, int index, const FieldPlan& field,
                             std::span<const std::byte> record) {
  switch (field.kind) {
    case FieldKind::kInteger: {
      const std::int64_t value =
          read_integer(record.data() + field.offset, field.bytes, field.is_signed, order_);
      if (field.is_symbol) addresses_.insert(static_cast<std::uint64_t>(value));
      insert.bind(index, value);
      return;
    }
    case FieldKind::kText:
      bind_utf8(insert, index, until_nul(record.subspan(field.offset, field.bytes)));
      return;
    case FieldKind::kRestText:
      bind_utf8(insert, index, until_nul(record.subspan(field.offset)));
      return;
    case FieldKind::kArray:
      bind_array(insert, index, field, record.subspan(field.offset, field.bytes));
      return;
    case FieldKind::kRestArray:
      bind_array(insert, index, field, record.subspan(field.offset));
      return;
    case FieldKind::kBytes:
      bind_bytes(insert, index, field,
                 field.bytes == 0 ? record.subspan(field.offset)
                                  : record.subspan(field.offset, field.bytes));
      return;
    case FieldKind::kPrintk:
      return;  // made of other fields, by bind_printk()
    default:
      bind_dynamic(insert, index, field, record);
  }
}

// A field of a record that ends before the format does: what there is of it.
void EventWriter::bind_part(Statement& insert, int index, const FieldPlan& field,
                            std::span<const std::byte> record) {
  if (field.end() <= record.size()) return bind_field(insert, index, field, record);
  FieldPlan part = field;
  const std::size_t left = field.offset < record.size() ? record.size() - field.offset : 0;
  part.bytes = static_cast<std::uint32_t>(left);
  if (field.kind == FieldKind::kArray) part.bytes -= part.bytes % field.element_bytes;
  const bool divisible = field.kind == FieldKind::kText || field.kind == FieldKind::kArray ||
                         (field.kind == FieldKind::kBytes && part.rendering == Rendering::kPlain);
  if (!divisible || part.bytes == 0) {
    insert.bind_null(index);
  } else {
    bind_field(insert, index, part, record);
  }
}

// include/trace/trace_events.h: length in the high half, offset in the low,
// from the record's start (__data_loc) or the field's end (__rel_loc).
void EventWriter::bind_dynamic(Statement& insert, int index, const FieldPlan& field,
                               std::span<const std::byte> record) {
  const auto word = load<std::uint32_t>(record.data() + field.offset, order_);
  const bool relative = field.kind == FieldKind::kRelText || field.kind == FieldKind::kRelArray ||
                        field.kind == FieldKind::kRelBytes;
  const std::size_t start = (word & 0xffffu) + (relative ? field.end() : 0);
  const std::size_t length = word >> 16;
  if (start > record.size() || length > record.size() - start) {
    counters_.add(Counter::kBadDynamicFields);
    insert.bind_null(index);
    return;
  }
  const auto bytes = record.subspan(start, length);
  switch (field.kind) {
    case FieldKind::kDynText:
    case FieldKind::kRelText:
      bind_utf8(insert, index, until_nul(bytes));
      return;
    case FieldKind::kDynArray:
    case FieldKind::kRelArray:
      bind_array(insert, index, field, bytes);
      return;
    default:
      bind_bytes(insert, index, field, bytes);
  }
}

// trace_bputs() stores the address of its text, trace_bprintk() that of a
// format and the arguments.
void EventWriter::bind_printk(Statement& insert, int index, const EventPlan& plan,
                              std::span<const std::byte> record) {
  std::optional<std::string> text;
  const auto field = [&](std::string_view name) {
    const auto found = std::find_if(plan.fields.begin(), plan.fields.end(),
                                    [&](const auto& each) { return each.name == name; });
    const bool whole = found != plan.fields.end() && found->end() <= record.size();
    return whole ? &*found : nullptr;
  };
  const FieldPlan* arguments = field("buf");
  const FieldPlan* address = field(arguments == nullptr ? "str" : "fmt");
  if (address != nullptr && address->kind == FieldKind::kInteger) {
    const auto found = printk_.find(static_cast<std::uint64_t>(
        read_integer(record.data() + address->offset, address->bytes, false, order_)));
    if (found != printk_.end() && arguments == nullptr) {
      text = found->second;
    } else if (found != printk_.end()) {
      text = printk_text(found->second, record.subspan(arguments->offset),
                         catalog_.page.commit_bytes, order_);
      if (!text) counters_.add(Counter::kBadDynamicFields);
    }
  }
  if (!text) {
    insert.bind_null(index);
    return;
  }
  std::string& kept = texts_.scratch();
  kept = std::move(*text);
  bind_utf8(insert, index, kept);
}

void EventWriter::write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
                        std::uint32_t buffer, std::span<const std::byte> record) {
  Table& table = tables_[event];
  table.rows.push_back({
      .lead = {.seq = ++seq_, .ts = ts, .cpu = cpu, .tid = tid, .buffer = buffer},
      .begin = table.data.size(),
      .bytes = record.size()});
  EventLead& lead = table.rows.back().lead;
  lead.prev_seq = table.previous.replace(lead);
  table.data.insert(table.data.end(), record.begin(), record.end());
  pending_bytes_ += record.size();
  ++loaded_[event];
  if (table.rows.size() == table.insert->batch_rows()) flush(event);
  if (pending_bytes_ > kMaxPendingBytes) [[unlikely]] flush_all();
}

void EventWriter::flush(std::uint32_t event) {
  Table& table = tables_[event];
  if (table.rows.empty()) return;
  const EventPlan& plan = catalog_.events[event];
  texts_.clear();
  table.insert->run(table.rows, [&](Statement& insert, int index, const Row& row) {
    const auto record = std::span(table.data).subspan(row.begin, row.bytes);
    if (record.size() >= plan.min_bytes) [[likely]] {
      for (const auto& field : plan.fields) bind_field(insert, ++index, field, record);
    } else {
      counters_.add(Counter::kShortRecords);
      for (const auto& field : plan.fields) bind_part(insert, ++index, field, record);
    }
    if (!plan.fields.empty() && plan.fields.back().kind == FieldKind::kPrintk) {
      bind_printk(insert, index, plan, record);
    }
  });
  pending_bytes_ -= table.data.size();
  table.rows.clear();
  table.data.clear();
}

void EventWriter::flush_all() {
  for (std::uint32_t event = 0; event < tables_.size(); ++event) flush(event);
}

void EventWriter::finish() { flush_all(); }

}  // namespace wbscope
