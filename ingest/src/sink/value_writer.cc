// SPDX-License-Identifier: Apache-2.0
// Records that come as named values into ev_ tables.
#include "sink/value_writer.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace wbscope {
namespace {

// Bounds for hostile input; a kernel has some 2,500 events.
constexpr std::size_t kMaxEvents = 8192;
constexpr std::size_t kMaxFieldsOfEvent = 512;
constexpr std::size_t kMaxFields = 65536;
constexpr std::size_t kMaxTasks = 1u << 20;
constexpr std::size_t kMaxWaitingBytes = 256u << 10;  // of one event
constexpr std::size_t kMaxWaitingInAll = 16u << 20;
constexpr std::size_t kMaxKeptBytes = 16u << 10;  // of one event without rows
// SQLite reads the whole schema again for a column that a table gets later:
// tables times such columns, some seconds.
constexpr std::size_t kMaxTablesRead = 1u << 20;

FieldKind kind_of_type(std::string_view type) {
  const bool array = type.find('[') != std::string_view::npos;
  if (array && type.find("char") != std::string_view::npos) return FieldKind::kText;
  return array ? FieldKind::kArray : FieldKind::kInteger;
}

const char* sqlite_type(const FieldPlan& field) {
  if (field.type.empty()) return "";
  return field.kind == FieldKind::kInteger ? "INTEGER" : "TEXT";
}

template <typename... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overload(Ts...) -> Overload<Ts...>;  // Clang 14 does not find it itself

}  // namespace

std::uint32_t ValueWriter::event(std::string_view system, std::string_view name) {
  std::string key(system);
  key.append(":").append(name);
  if (const auto found = by_name_.find(key); found != by_name_.end()) return found->second;
  if (events_.size() >= kMaxEvents) {
    counters_.add(Counter::kNamesOverCap);
    return kNone;
  }
  auto event = std::make_unique<Event>();
  event->system = system;
  event->name = name;
  event->table = event_table_name(system, name, tables_);
  event->previous = previous_rows_.of(previous_, system, name);
  event->repeats = previous_.repeats(system, name);
  if (event->previous->is_counted()) {
    event->task_counts = task_counts_.add(system.empty() ? std::string(name)
                                                         : std::string(system) + ":" + std::string(name));
  }
  if (previous_.is_in_context(system, name)) {
    for (const auto& other : events_) {
      add_context(*other, *event);
      add_context(*event, *other);
    }
  }
  events_.push_back(std::move(event));
  const auto index = static_cast<std::uint32_t>(events_.size() - 1);
  by_name_.emplace(std::move(key), index);
  return index;
}

void ValueWriter::add_context(Event& other, Event& event) const {
  const auto* fields = previous_.context_fields(other.system, other.name, event.system, event.name);
  if (fields) other.contexts.emplace_back(&event, *fields);
}

std::uint32_t ValueWriter::field(std::uint32_t event_index, const ValueField& wanted) {
  if (event_index == kNone) return kNone;
  Event& event = *events_[event_index];
  if (const auto found = event.by_name.find(wanted.name); found != event.by_name.end()) {
    return found->second;
  }
  const std::size_t tables_read = event.insert ? events_.size() : 0;
  if (event.fields.size() >= kMaxFieldsOfEvent || fields_declared_ >= kMaxFields ||
      tables_read_ + tables_read > kMaxTablesRead) {
    counters_.add(Counter::kNamesOverCap);
    return kNone;
  }
  tables_read_ += tables_read;
  ++fields_declared_;
  FieldPlan field;
  field.name = wanted.name;
  field.type = wanted.type;
  field.kind = kind_of_type(wanted.type);
  field.column = event_column_name(wanted.name, event.columns);
  event.fields.push_back(std::move(field));
  const auto index = static_cast<std::uint32_t>(event.fields.size() - 1);
  event.by_name.emplace(wanted.name, index);
  return index;
}

void ValueWriter::describe(std::uint32_t event, std::string format,
                           std::vector<EnumLabel> labels) {
  if (event == kNone) return;
  events_[event]->format = std::move(format);
  events_[event]->labels = std::move(labels);
}

void ValueWriter::note_task(std::int32_t tid, const TaskSpan& records) {
  if (tid == EventLead::kNoTid) return;
  auto found = tasks_.find(tid);
  if (found == tasks_.end()) {
    if (tasks_.size() < kMaxTasks) tasks_.emplace(tid, records);
    return;
  }
  TaskSpan& span = found->second;
  span.first_ts = std::min(span.first_ts, records.first_ts);
  span.last_ts = std::max(span.last_ts, records.last_ts);
  span.events += records.events;
}

void ValueWriter::name_task(std::int32_t tid, std::string_view comm) {
  const auto found = task_names_.find(tid);
  if (found == task_names_.end()) {
    if (task_names_.size() < kMaxTasks) task_names_.emplace(tid, comm);
  } else if (found->second != comm) {
    found->second = comm;
  }
}

void ValueWriter::count(std::uint32_t event, std::int64_t ts, std::int32_t tid) {
  count(event, tid, TaskSpan{.first_ts = ts, .last_ts = ts, .events = 1});
}

void ValueWriter::count(std::uint32_t event, std::int32_t tid, const TaskSpan& records) {
  if (event == kNone) {
    counters_.add(Counter::kRecordsOverCap, records.events);
  } else {
    events_[event]->counted += records.events;
  }
  note_task(tid, records);
}

void ValueWriter::store(Event& event, Stored& place, FieldPlan& field, const Value& value) {
  const auto keep = [&](Stored::Kind kind, const char* data, std::size_t size) {
    place.kind = kind;
    place.bytes = {.begin = static_cast<std::uint32_t>(event.bytes.size()),
                   .size = static_cast<std::uint32_t>(size)};
    event.bytes.insert(event.bytes.end(), data, data + size);
    waiting_bytes_ += size;
  };
  std::visit(Overload{[](std::monostate) {},
                      [&](std::int64_t integer) {
                        place.kind = Stored::Kind::kInteger;
                        place.integer = integer;
                      },
                      [&](double real) {
                        place.kind = Stored::Kind::kReal;
                        place.real = real;
                      },
                      [&](std::string_view text) {
                        keep(Stored::Kind::kText, text.data(), text.size());
                        if (field.type.empty()) field.kind = FieldKind::kText;
                      },
                      [&](std::span<const std::byte> blob) {
                        keep(Stored::Kind::kBlob, as_chars(blob.data()), blob.size());
                        if (field.type.empty()) field.kind = FieldKind::kBytes;
                      }},
             value);
}

void ValueWriter::write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
                        std::uint32_t buffer, std::span<const Cell> cells) {
  write_at(event == kNone ? seq_ : ++seq_, event, ts, cpu, tid, buffer, cells);
}

void ValueWriter::write_at(std::int64_t seq, std::uint32_t event_index, std::int64_t ts,
                           std::uint32_t cpu, std::int32_t tid, std::uint32_t buffer,
                           std::span<const Cell> cells) {
  count(event_index, ts, tid);
  if (event_index == kNone) return;
  Event& event = *events_[event_index];
  ++event.loaded;
  const std::size_t first = event.stored.size();
  event.rows.push_back(
      {.lead = {.seq = seq, .ts = ts, .cpu = cpu, .tid = tid, .buffer = buffer},
       .first = first,
       .count = static_cast<std::uint32_t>(event.fields.size())});
  EventLead& lead = event.rows.back().lead;
  event.previous->link(lead, values_of(event, event.repeats, cells));
  for (const auto& [to, fields] : event.contexts) {
    if (fields.empty()) {
      to->previous->note_change();
    } else {
      to->previous->note_context(tid, values_of(event, fields, cells));
    }
  }
  times_.note(seq, ts);
  task_counts_.note(event.task_counts, tid, seq);
  event.stored.resize(first + event.fields.size());
  for (const auto& [field, value] : cells) {
    if (field < event.fields.size()) {
      store(event, event.stored[first + field], event.fields[field], value);
    }
  }
  if (event.rows.size() >= event.batch_rows || event.bytes.size() >= kMaxWaitingBytes) {
    flush(event);
  }
  if (waiting_bytes_ >= kMaxWaitingInAll) finish();
}

// The values of the fields by their names, so that their order in the record does not count.
std::string_view ValueWriter::values_of(const Event& event, const std::vector<std::string>& names,
                                        std::span<const Cell> cells) {
  values_bytes_.clear();
  const auto add = [this](char kind, const void* data, std::size_t bytes) {
    values_bytes_ += kind;
    values_bytes_.append(static_cast<const char*>(data), bytes);
  };
  for (const std::string& name : names) {
    const auto found = event.by_name.find(name);
    if (found == event.by_name.end()) continue;
    for (const auto& [field, value] : cells) {
      if (field != found->second) continue;
      std::visit(Overload{[](std::monostate) {},
                          [&](std::int64_t integer) { add('i', &integer, sizeof(integer)); },
                          [&](double real) { add('r', &real, sizeof(real)); },
                          [&](std::string_view text) { add('t', text.data(), text.size()); },
                          [&](std::span<const std::byte> blob) {
                            add('b', blob.data(), blob.size());
                          }},
                 value);
    }
    values_bytes_ += '\0';
  }
  return values_bytes_;
}

LinkColumns ValueWriter::links(const Event& event) const {
  return {.has_prev_seq = event.previous->is_kept(), .has_repeats_count = !event.repeats.empty()};
}

// Makes the table, or the columns that it does not have yet.
void ValueWriter::prepare(Event& event) {
  if (event.insert && event.columns_made == event.fields.size()) return;
  std::vector<EventColumn> columns;
  for (const auto& field : event.fields) columns.push_back({field.column, sqlite_type(field)});
  if (!event.insert) {
    create_event_table(db_, event.table, columns, links(event));
  } else {
    event.insert.reset();
    for (std::size_t i = event.columns_made; i < columns.size(); ++i) {
      add_event_column(db_, event.table, columns[i]);
    }
  }
  event.insert =
      std::make_unique<EventInsert>(statements_, event.table, columns, links(event));
  event.columns_made = columns.size();
  event.batch_rows = event.insert->batch_rows();
}

void ValueWriter::flush(Event& event) {
  if (event.rows.empty()) return;
  prepare(event);
  texts_.clear();
  const auto text_of = [&event](const Stored& stored) {
    return std::string_view(event.bytes.data() + stored.bytes.begin, stored.bytes.size);
  };
  event.insert->run(event.rows, [&](Statement& insert, int index, const Row& row) {
    for (std::size_t i = 0; i < event.fields.size(); ++i) {
      const Stored stored = i < row.count ? event.stored[row.first + i] : Stored{};
      ++index;
      switch (stored.kind) {
        case Stored::Kind::kNull:
          insert.bind_null(index);
          break;
        case Stored::Kind::kInteger:
          insert.bind(index, stored.integer);
          break;
        case Stored::Kind::kReal:
          insert.bind(index, stored.real);
          break;
        case Stored::Kind::kText:
          texts_.bind_utf8(insert, index, text_of(stored), counters_);
          break;
        case Stored::Kind::kBlob:
          insert.bind_blob(index, text_of(stored).data(), stored.bytes.size);
          break;
      }
    }
  });
  waiting_bytes_ -= event.bytes.size();
  event.rows.clear();
  event.stored.clear();
  event.bytes.clear();
  if (event.bytes.capacity() > kMaxKeptBytes) event.bytes.shrink_to_fit();
}

void ValueWriter::finish() {
  for (const auto& event : events_) flush(*event);
  task_counts_.flush();
}

void ValueWriter::link_groups() {
  for (const auto& event : events_) {
    const auto group = previous_.group(event->system, event->name);
    if (group.empty() || event->loaded == 0) continue;
    std::string rows;
    for (const auto& other : events_) {
      if (other->loaded == 0 || previous_.group(other->system, other->name) != group) continue;
      rows += rows.empty() ? "SELECT" : " UNION ALL SELECT";
      rows += " seq, buffer, tid FROM " + quoted(other->table);
    }
    const bool of_task = previous_.of(event->system, event->name) == PreviousOf::kTask;
    const std::string own = quoted(event->table);
    db_.exec("UPDATE " + own +
             " SET prev_seq = l.before FROM (SELECT r.seq, lag(r.seq) OVER (PARTITION BY r.buffer" +
             (of_task ? ", r.tid" : "") + " ORDER BY r.seq) AS before FROM (" + rows +
             ") AS r) AS l WHERE l.seq = " + own + ".seq");
  }
}

EventCatalog ValueWriter::catalog() const {
  EventCatalog catalog;
  for (const auto& event : events_) {
    EventPlan plan;
    plan.system = event->system;
    plan.name = event->name;
    plan.table = event->table;
    plan.status = FormatStatus::kText;
    plan.text = event->format;
    plan.fields = event->fields;
    plan.labels = event->labels;
    catalog.events.push_back(std::move(plan));
  }
  return catalog;
}

std::vector<bool> ValueWriter::loaded_events() const {
  std::vector<bool> loaded;
  for (const auto& event : events_) loaded.push_back(event->loaded > 0);
  return loaded;
}

EventTotals ValueWriter::totals() const {
  EventTotals totals;
  for (const auto& event : events_) {
    totals.counted.push_back(event->counted);
    totals.loaded.push_back(event->loaded);
  }
  return totals;
}

std::uint64_t ValueWriter::counted() const {
  std::uint64_t total = counters_.get(Counter::kRecordsOverCap);
  for (const auto& event : events_) total += event->counted;
  return total;
}

std::map<std::int32_t, TaskSpan> ValueWriter::tasks() const {
  return {tasks_.begin(), tasks_.end()};
}

}  // namespace wbscope
