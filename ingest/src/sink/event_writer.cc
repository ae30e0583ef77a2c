// SPDX-License-Identifier: Apache-2.0
// Records of wanted events into their ev_ tables.
#include "sink/event_writer.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "sink/field_text.h"

namespace wbscope {
namespace {

constexpr std::size_t kLeadColumns = 5;  // seq, ts, cpu, tid, buffer
constexpr std::size_t kMaxPendingBytes = 16u << 20;
// SQLite takes about 160 bytes for each parameter of a statement.
constexpr std::size_t kMaxPreparedParameters = 320'000;

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

std::string create_table(const EventPlan& event) {
  std::string sql = "CREATE TABLE " + quoted(event.table) +
                    " (ts INTEGER NOT NULL, cpu INTEGER NOT NULL, tid INTEGER NOT NULL, "
                    "buffer INTEGER NOT NULL";
  for (const auto& field : event.fields) {
    sql += ", " + quoted(field.column) + " " + column_type(field);
  }
  // Time stamps can be equal; seq is the order of all loaded records, in any
  // table. As the rowid it takes no room of its own.
  return sql + ", seq INTEGER PRIMARY KEY)";
}

std::string insert_rows(const EventPlan& event, std::size_t rows) {
  std::string sql = "INSERT INTO " + quoted(event.table) + " (seq, ts, cpu, tid, buffer";
  std::string values = "(?,?,?,?,?";
  for (const auto& field : event.fields) {
    sql += ", " + quoted(field.column);
    values += ",?";
  }
  sql += ") VALUES ";
  for (std::size_t i = 0; i < rows; ++i) sql += (i == 0 ? "" : ",") + values + ")";
  return sql;
}

// As many rows as SQLite's limit of parameters allows, 32 at most.
std::size_t batch_rows(const EventPlan& event) {
  constexpr std::size_t kMaxParameters = 32000;
  constexpr std::size_t kMaxRows = 32;
  return std::clamp<std::size_t>(kMaxParameters / (kLeadColumns + event.fields.size()), 1,
                                 kMaxRows);
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
                         const std::vector<bool>& wanted, ByteOrder order, PrintkFormats printk)
    : db_(db),
      catalog_(catalog),
      order_(order),
      printk_(std::move(printk)),
      tables_(catalog.events.size()),
      loaded_(catalog.events.size()) {
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    if (!wanted[i]) continue;
    db.exec(create_table(catalog.events[i]));
    tables_[i].batch_rows = batch_rows(catalog.events[i]);
  }
}

Statement& EventWriter::prepared(std::unique_ptr<Statement>& slot, const EventPlan& plan,
                                 std::size_t rows) {
  if (slot) return *slot;
  const std::size_t parameters = rows * (kLeadColumns + plan.fields.size());
  if (prepared_parameters_ + parameters > kMaxPreparedParameters) {
    for (Table& table : tables_) {
      table.insert_batch.reset();
      table.insert_one.reset();
    }
    prepared_parameters_ = 0;
  }
  prepared_parameters_ += parameters;
  slot = std::make_unique<Statement>(db_, insert_rows(plan, rows));
  return *slot;
}

std::string& EventWriter::scratch() {
  if (scratch_used_ == scratch_.size()) scratch_.push_back(std::make_unique<std::string>());
  std::string& text = *scratch_[scratch_used_++];
  text.clear();
  return text;
}

void EventWriter::bind_utf8(Statement& insert, int index, std::string_view text) {
  if (is_utf8(text)) {
    insert.bind_text(index, text);
    return;
  }
  counters_.add(Counter::kReplacedText);
  std::string& clean = scratch();
  clean = replace_invalid_utf8(text);
  insert.bind_text(index, clean);
}

// Integers as "[1,2,3]", which json_each() of SQLite can take apart.
void EventWriter::bind_array(Statement& insert, int index, const FieldPlan& field,
                             std::span<const std::byte> bytes) {
  if (field.rendering != Rendering::kPlain) return bind_bytes(insert, index, field, bytes);
  if (field.element_bytes != 2 && field.element_bytes != 4 && field.element_bytes != 8) {
    insert.bind_blob(index, bytes.data(), bytes.size());
    return;
  }
  std::string& out = scratch();
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
  std::string& text = scratch();
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
  std::string& kept = scratch();
  kept = std::move(*text);
  bind_utf8(insert, index, kept);
}

int EventWriter::bind_row(Statement& insert, int index, const EventPlan& plan,
                          const Table& table, const Row& row) {
  insert.bind(++index, row.seq);
  insert.bind(++index, row.ts);
  insert.bind(++index, std::int64_t{row.cpu});
  insert.bind(++index, std::int64_t{row.tid});
  insert.bind(++index, std::int64_t{row.buffer});
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
  return index;
}

void EventWriter::write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
                        std::uint32_t buffer, std::span<const std::byte> record) {
  Table& table = tables_[event];
  table.rows.push_back({.seq = ++seq_,
                        .ts = ts,
                        .cpu = cpu,
                        .tid = tid,
                        .buffer = buffer,
                        .begin = table.data.size(),
                        .bytes = record.size()});
  table.data.insert(table.data.end(), record.begin(), record.end());
  pending_bytes_ += record.size();
  ++loaded_[event];
  if (table.rows.size() == table.batch_rows) flush(event);
  if (pending_bytes_ > kMaxPendingBytes) [[unlikely]] flush_all();
}

void EventWriter::flush(std::uint32_t event) {
  Table& table = tables_[event];
  const EventPlan& plan = catalog_.events[event];
  if (table.rows.empty()) return;
  scratch_used_ = 0;
  if (table.rows.size() == table.batch_rows) {
    Statement& insert = prepared(table.insert_batch, plan, table.batch_rows);
    int index = 0;
    for (const Row& row : table.rows) index = bind_row(insert, index, plan, table, row);
    insert.run();
  } else {
    Statement& insert = prepared(table.insert_one, plan, 1);
    for (const Row& row : table.rows) {
      bind_row(insert, 0, plan, table, row);
      insert.run();
    }
  }
  pending_bytes_ -= table.data.size();
  table.rows.clear();
  table.data.clear();
}

void EventWriter::flush_all() {
  for (std::uint32_t event = 0; event < tables_.size(); ++event) flush(event);
}

void EventWriter::finish() { flush_all(); }

}  // namespace wbscope
