// SPDX-License-Identifier: Apache-2.0
// Records of wanted events into their ev_ tables.
#include "sink/event_writer.h"

#include <algorithm>
#include <tuple>

#include "base/byte_reader.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxPendingBytes = 16u << 20;
// Of a batch that becomes pages: as much as stays in a processor's cache.
constexpr std::size_t kRowsForPages = 2048;
constexpr std::size_t kBytesForPages = 256u << 10;

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

std::vector<FieldPlan> named_fields(const EventPlan& event, const std::vector<std::string>& names) {
  std::vector<FieldPlan> fields;
  for (const auto& field : event.fields) {
    if (std::ranges::find(names, field.name) != names.end()) fields.push_back(field);
  }
  return fields;
}

// A value into its place in an INSERT.
struct Binder {
  Statement& insert;
  int index;
  BoundTexts& texts;
  AddressSet& addresses;
  Counters& counters;

  void next() noexcept { ++index; }
  void integer(std::int64_t value) { insert.bind(index, value); }
  void text(std::string_view value) { texts.bind_utf8(insert, index, value, counters); }
  void blob(std::span<const std::byte> value) {
    insert.bind_blob(index, value.data(), value.size());
  }
  void null() { insert.bind_null(index); }
  [[nodiscard]] std::string& scratch() { return texts.scratch(); }
  void made(const std::string& value) { insert.bind_text(index, value); }
  void symbol(std::uint64_t address) { addresses.insert(address); }
};

}  // namespace

EventWriter::EventWriter(Database& db, const EventCatalog& catalog,
                         const std::vector<bool>& wanted, ByteOrder order, PrintkFormats printk,
                         const PreviousChoice& previous, const std::optional<PagesOf>& pages)
    : db_(db),
      statements_(db),
      times_(db, pages.has_value()),
      task_counts_(db, pages.has_value()),
      catalog_(catalog),
      order_(order),
      printk_(std::move(printk)),
      tables_(catalog.events.size()),
      loaded_(catalog.events.size()) {
  PreviousRows rows;
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    if (!wanted[i]) continue;
    const auto columns = columns_of(catalog.events[i]);
    const auto& [system, name] = std::tie(catalog.events[i].system, catalog.events[i].name);
    tables_[i].previous = rows.of(previous, system, name);
    const PreviousRow& row = *tables_[i].previous;
    if (row.is_counted()) {
      tables_[i].task_counts = task_counts_.add(catalog.events[i].full_name());
    }
    const auto repeats = previous.repeats(system, name);
    tables_[i].repeats = named_fields(catalog.events[i], repeats);
    const LinkColumns links{.has_prev_seq = row.is_kept(), .has_repeats_count = !repeats.empty()};
    tables_[i].links = links;
    create_event_table(db, catalog.events[i].table, columns, links);
    if (pages) continue;
    tables_[i].insert =
        std::make_unique<EventInsert>(statements_, catalog.events[i].table, columns, links);
  }
  add_context(previous, wanted);
  if (pages) begin_pages(*pages, wanted);
}

void EventWriter::add_context(const PreviousChoice& previous, const std::vector<bool>& wanted) {
  for (std::uint32_t to = 0; to < tables_.size(); ++to) {
    const EventPlan& event = catalog_.events[to];
    if (!wanted[to] || !previous.has_context(event.system, event.name)) continue;
    for (std::size_t from = 0; from < tables_.size(); ++from) {
      const EventPlan& other = catalog_.events[from];
      const auto* fields =
          previous.context_fields(other.system, other.name, event.system, event.name);
      if (!wanted[from] || !fields) continue;
      tables_[from].contexts.push_back({to, named_fields(other, *fields), !fields->empty()});
    }
  }
}

void EventWriter::begin_pages(const PagesOf& where, const std::vector<bool>& wanted) {
  // Whoever keeps its lock does not look whether the file has changed.
  db_.exec("PRAGMA main.locking_mode=NORMAL; COMMIT");
  pages_ = std::make_unique<EventPages>(db_, where, catalog_, order_, printk_);
  for (std::uint32_t event = 0; event < tables_.size(); ++event) {
    if (wanted[event]) pages_->add_table(event, tables_[event].links);
  }
  db_.exec("BEGIN");  // of what is staged
}

bool EventWriter::is_full(const Table& table) const noexcept {
  if (!pages_) return table.batch.rows.size() == table.insert->batch_rows();
  return table.batch.rows.size() >= kRowsForPages || table.batch.data.size() >= kBytesForPages;
}

void EventWriter::write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
                        std::uint32_t buffer, std::span<const std::byte> record) {
  Table& table = tables_[event];
  EventLead& lead = table.batch.add(record);
  lead.seq = ++seq_;
  lead.ts = ts;
  lead.cpu = cpu;
  lead.tid = tid;
  lead.buffer = buffer;
  if (table.previous->is_kept()) table.previous->link(lead, values_of(table.repeats, record));
  for (const Context& context : table.contexts) {
    PreviousRow& row = *tables_[context.to].previous;
    if (context.has_fields) {
      row.note_context(tid, values_of(context.fields, record));
    } else {
      row.note_change();
    }
  }
  times_.note(lead.seq, ts);
  task_counts_.note(table.task_counts, tid, lead.seq);
  pending_bytes_ += record.size() + sizeof(EventBatch::Row);
  ++loaded_[event];
  if (is_full(table)) flush(event);
  if (pending_bytes_ > kMaxPendingBytes) [[unlikely]] flush_all();
}

// The bytes of the fields; of a short record those that it has.
std::string_view EventWriter::values_of(const std::vector<FieldPlan>& fields,
                                        std::span<const std::byte> record) {
  values_bytes_.clear();
  for (const FieldPlan& field : fields) {
    if (field.offset >= record.size()) continue;
    const auto bytes = std::min<std::size_t>(field.bytes, record.size() - field.offset);
    values_bytes_.append(as_chars(record.data()) + field.offset, bytes);
  }
  return values_bytes_;
}

void EventWriter::flush(std::uint32_t event) {
  Table& table = tables_[event];
  if (table.batch.rows.empty()) return;
  pending_bytes_ -= table.batch.size();
  if (pages_) {
    // A rare event keeps no memory that it does not fill.
    const bool is_frequent = is_full(table);
    pages_->add(event, table.batch);
    if (is_frequent) pages_->equip(table.batch);
    return;
  }
  insert(catalog_.events[event], table);
  table.batch.clear();
}

void EventWriter::insert(const EventPlan& plan, Table& table) {
  texts_.clear();
  const FieldReader<Binder> reader({.order = order_,
                                    .long_bytes = catalog_.page.commit_bytes,
                                    .printk = printk_,
                                    .counters = counters_});
  table.insert->run(table.batch.rows, [&](Statement& insert, int index, const auto& row) {
    Binder out{insert, index, texts_, addresses_, counters_};
    read_fields(reader, plan, table.batch.record(row), counters_, out);
  });
}

void EventWriter::flush_all() {
  for (std::uint32_t event = 0; event < tables_.size(); ++event) flush(event);
}

void EventWriter::finish() {
  flush_all();
  if (pages_) {
    pages_->finish(counters_, addresses_);
    pages_.reset();
    db_.exec("COMMIT; BEGIN");  // SQLite looks at the file again
    times_.publish();
  }
  task_counts_.publish();
}

}  // namespace wbscope
