// SPDX-License-Identifier: Apache-2.0
// The tables of a run database that are not events (docs/schema.md).
#include "sink/run_writer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/utf8.h"
#include "sink/event_table.h"
#include "sink/saved_text.h"

namespace wbscope {
namespace {

constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE event_counts (
  event TEXT PRIMARY KEY, id INTEGER, count INTEGER, loaded_count INTEGER, table_name TEXT);
CREATE TABLE event_format (
  event TEXT PRIMARY KEY, id INTEGER, table_name TEXT, status TEXT, format TEXT);
CREATE TABLE event_field (
  event TEXT, field TEXT, column_name TEXT, type TEXT, offset INTEGER, size INTEGER,
  is_signed INTEGER, kind TEXT);
CREATE TABLE enum_label (event TEXT, field TEXT, value INTEGER, label TEXT, kind TEXT);
CREATE TABLE task (
  tid INTEGER PRIMARY KEY, comm TEXT, first_ts INTEGER, last_ts INTEGER, events_count INTEGER);
CREATE TABLE lost_events (ts INTEGER, cpu INTEGER, buffer INTEGER, count INTEGER);
CREATE TABLE bad_stamp (
  ts_found INTEGER, ts INTEGER, cpu INTEGER, buffer INTEGER, records_count INTEGER, place TEXT);
CREATE TABLE buffer (id INTEGER PRIMARY KEY, name TEXT, clock TEXT, subbuf_bytes INTEGER);
CREATE TABLE cpu_stat (buffer INTEGER, cpu INTEGER, key TEXT, value);
CREATE TABLE zone (
  node INTEGER, zone TEXT, start_pfn INTEGER, spanned_count INTEGER, present_count INTEGER,
  managed_count INTEGER);
CREATE TABLE bdi (bdi TEXT PRIMARY KEY, device TEXT, mount TEXT);
CREATE TABLE cgroup (cgroup_ino INTEGER PRIMARY KEY, path TEXT);
CREATE TABLE sidecar_file (name TEXT PRIMARY KEY, bytes INTEGER, status TEXT, message TEXT);
CREATE TABLE sidecar_vmstat (sample TEXT, ts INTEGER, name TEXT, value INTEGER);
CREATE TABLE sidecar_meminfo (sample TEXT, ts INTEGER, name TEXT, value INTEGER, unit TEXT);
CREATE TABLE sidecar_zoneinfo (
  sample TEXT, ts INTEGER, node INTEGER, zone TEXT, name TEXT, value INTEGER);
CREATE TABLE sidecar_sample (
  source TEXT, sample TEXT, ts INTEGER, object TEXT, name TEXT, value INTEGER, unit TEXT);
CREATE TABLE sidecar_task_io (
  sample TEXT, ts INTEGER, tid INTEGER, tgid INTEGER, comm TEXT, write_bytes INTEGER,
  cancelled_write_bytes INTEGER, write_char_bytes INTEGER, read_bytes INTEGER,
  read_char_bytes INTEGER, blkio_delay_ns INTEGER, swapin_delay_ns INTEGER,
  freepages_delay_ns INTEGER, thrashing_delay_ns INTEGER);
CREATE TABLE sidecar_ls_files (inode INTEGER, bytes INTEGER, name TEXT);
CREATE TABLE sidecar_fio (path TEXT PRIMARY KEY, value);
CREATE TABLE sidecar_sysctls (name TEXT, value TEXT, number INTEGER);
CREATE TABLE sidecar_bdis (
  line INTEGER PRIMARY KEY, bdi TEXT, device TEXT, mount TEXT, type TEXT);
CREATE TABLE sidecar_mounts (
  line INTEGER PRIMARY KEY, device TEXT, mount TEXT, type TEXT, source TEXT, options TEXT);
CREATE TABLE sidecar_swaps (
  path TEXT, type TEXT, size_kib INTEGER, used_kib INTEGER, priority INTEGER);
CREATE TABLE sidecar_stacks (bdi TEXT, disk TEXT);
CREATE TABLE sidecar_text (name TEXT PRIMARY KEY, text TEXT);
CREATE TABLE printk_format (address INTEGER PRIMARY KEY, format TEXT);
CREATE TABLE symbol (address INTEGER PRIMARY KEY, name TEXT, offset INTEGER, module TEXT);
CREATE TABLE guest (id INTEGER PRIMARY KEY, name TEXT, trace_id TEXT);
CREATE TABLE guest_vcpu (guest INTEGER, vcpu INTEGER, host_tid INTEGER);
CREATE TABLE clock_shift (
  cpu INTEGER, ts INTEGER, offset INTEGER, scaling INTEGER, fraction INTEGER);
CREATE TABLE ingest_stats (
  name TEXT PRIMARY KEY, severity TEXT, value INTEGER, description TEXT);
)sql";

const char* status_name(FormatStatus status) {
  switch (status) {
    case FormatStatus::kParsed:
      return "parsed";
    case FormatStatus::kPartial:
      return "partial";
    case FormatStatus::kRaw:
    case FormatStatus::kNone:
      return "raw";
    case FormatStatus::kText:
      return "text";
    case FormatStatus::kPerfetto:
      return "perfetto";
  }
  return "raw";
}

const char* kind_name(const FieldPlan& field) {
  if (field.rendering != Rendering::kPlain) return "text";
  switch (field.kind) {
    case FieldKind::kInteger:
      return "integer";
    case FieldKind::kText:
    case FieldKind::kRestText:
    case FieldKind::kDynText:
    case FieldKind::kRelText:
    case FieldKind::kPrintk:
      return "text";
    case FieldKind::kArray:
    case FieldKind::kRestArray:
    case FieldKind::kDynArray:
    case FieldKind::kRelArray:
      return "array";
    case FieldKind::kBytes:
    case FieldKind::kDynBytes:
    case FieldKind::kRelBytes:
      return "bytes";
  }
  return "bytes";
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kError:
      return "error";
    case Severity::kDataLoss:
      return "data_loss";
  }
  return "error";
}

}  // namespace

std::string hex_id(std::uint64_t id) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(id));
  return text;
}

namespace {

// NULL for records that came as named values, where no number is known.
void bind_layout(Statement& insert, int index, FormatStatus status, std::int64_t number) {
  if (status == FormatStatus::kText || status == FormatStatus::kPerfetto ||
      status == FormatStatus::kNone) {
    insert.bind_null(index);
  } else {
    insert.bind(index, number);
  }
}

// Columns that name a task: (comm column, tid column).
constexpr std::pair<const char*, const char*> kCommPairs[] = {
    {"next_comm", "next_pid"}, {"prev_comm", "prev_pid"}, {"comm", "pid"}};

}  // namespace

std::string kernel_release(const std::string& uname) {
  const auto first = uname.find(' ');
  const auto second = first == std::string::npos ? first : uname.find(' ', first + 1);
  if (second == std::string::npos) return {};
  return uname.substr(second + 1, uname.find(' ', second + 1) - second - 1);
}

RunWriter::RunWriter(Database& db) : db_(db) { db_.exec(kSchema); }

void RunWriter::source(const InputFile& file, const std::string& hash) {
  meta("schema_version", kSchemaVersion);
  meta("wbscope_version", WBSCOPE_VERSION);
  meta("source_name", file.name());
  meta("source_bytes", static_cast<std::int64_t>(file.size()));
  if (!hash.empty()) meta("source_hash", "xxh3:" + hash);
}

void RunWriter::meta(std::string_view key, std::string_view value) {
  Statement insert(db_, "INSERT OR REPLACE INTO meta VALUES (?, ?)");
  const std::string clean = replace_invalid_utf8(value);
  insert.bind_text(1, key);
  insert.bind_text(2, clean);
  insert.run();
}

void RunWriter::meta(std::string_view key, std::int64_t value) {
  Statement insert(db_, "INSERT OR REPLACE INTO meta VALUES (?, ?)");
  insert.bind_text(1, key);
  insert.bind(2, value);
  insert.run();
}

void RunWriter::formats(const EventCatalog& catalog, const std::vector<bool>& wanted,
                        const std::vector<bool>& recordable) {
  Statement format(db_, "INSERT OR IGNORE INTO event_format VALUES (?, ?, ?, ?, ?)");
  Statement column(db_, "INSERT INTO event_field VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  Statement label(db_, "INSERT INTO enum_label VALUES (?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    const EventPlan& event = catalog.events[i];
    if (event.status == FormatStatus::kNone) continue;
    if (i < recordable.size() && !recordable[i]) continue;
    const std::string name = replace_invalid_utf8(event.full_name());
    const std::string text = replace_invalid_utf8(event.text);
    format.bind_text(1, name);
    bind_layout(format, 2, event.status, event.id);
    if (wanted[i]) {
      format.bind_text(3, event.table);
    } else {
      format.bind_null(3);
    }
    format.bind_text(4, status_name(event.status));
    format.bind_text(5, text);
    format.run();
    for (const auto& field : event.fields) {
      const std::string field_name = replace_invalid_utf8(field.name);
      const std::string type = replace_invalid_utf8(field.type);
      column.bind_text(1, name);
      column.bind_text(2, field_name);
      column.bind_text(3, field.column);
      column.bind_text(4, type);
      bind_layout(column, 5, event.status, field.offset);
      bind_layout(column, 6, event.status, field.bytes);
      bind_layout(column, 7, event.status, field.is_signed ? 1 : 0);
      column.bind_text(8, kind_name(field));
      column.run();
    }
    for (const auto& entry : event.labels) {
      const std::string field_name = replace_invalid_utf8(entry.field);
      const std::string text_label = replace_invalid_utf8(entry.label);
      label.bind_text(1, name);
      label.bind_text(2, field_name);
      label.bind(3, entry.value);
      label.bind_text(4, text_label);
      label.bind_text(5, entry.is_flag ? "flag" : "symbol");
      label.run();
    }
  }
}

void RunWriter::event_counts(const EventCatalog& catalog, const std::vector<bool>& wanted,
                             const EventTotals& totals) {
  Statement insert(db_, "INSERT OR IGNORE INTO event_counts VALUES (?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    if (totals.counted[i] == 0) continue;
    const std::string name = replace_invalid_utf8(catalog.events[i].full_name());
    insert.bind_text(1, name);
    bind_layout(insert, 2, catalog.events[i].status, catalog.events[i].id);
    insert.bind(3, static_cast<std::int64_t>(totals.counted[i]));
    insert.bind(4, static_cast<std::int64_t>(totals.loaded[i]));
    if (wanted[i]) {
      insert.bind_text(5, catalog.events[i].table);
    } else {
      insert.bind_null(5);
    }
    insert.run();
  }
}

void RunWriter::buffers(const TraceInfo& info) {
  Statement insert(db_, "INSERT INTO buffer VALUES (?, ?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& buffer : info.buffers) {
    const std::string name = replace_invalid_utf8(buffer.name);
    const std::string clock = replace_invalid_utf8(buffer.clock);
    insert.bind(1, id++);
    insert.bind_text(2, name);
    insert.bind_text(3, clock);
    if (info.buffers.size() > 1 && !buffer.has_pages()) {
      insert.bind_null(4);
    } else {
      insert.bind(4, std::int64_t{buffer.page_bytes});
    }
    insert.run();
  }
}

void RunWriter::cpu_stats(const TraceInfo& info) {
  Statement insert(db_, "INSERT INTO cpu_stat VALUES (0, ?, ?, ?)");
  for (const auto& text : info.cpu_stats) {
    const CpuStat stat = parse_cpu_stat(text);
    for (const auto& [key, value] : stat.values) {
      std::int64_t number = 0;
      const auto [end, problem] =
          std::from_chars(value.data(), value.data() + value.size(), number);
      const bool is_number = problem == std::errc() && end == value.data() + value.size();
      insert.bind(1, stat.cpu);
      insert.bind_text(2, key);
      if (is_number) {
        insert.bind(3, number);
      } else {
        insert.bind_text(3, value);
      }
      insert.run();
    }
  }
}

void RunWriter::tasks(const std::map<std::int32_t, TaskSpan>& spans, std::string_view cmdlines) {
  tasks(spans, parse_saved_cmdlines(cmdlines));
}

void RunWriter::tasks(const std::map<std::int32_t, TaskSpan>& spans,
                      std::map<std::int32_t, std::string> names) {
  names[0] = "<idle>";  // as trace-cmd calls it; each CPU has its own swapper/N
  Statement insert(db_, "INSERT OR REPLACE INTO task VALUES (?, ?, ?, ?, ?)");
  for (const auto& [tid, span] : spans) {
    const auto name = names.find(tid);
    insert.bind(1, std::int64_t{tid});
    if (name == names.end()) {
      insert.bind_null(2);
    } else {
      insert.bind_text(2, name->second);
    }
    insert.bind(3, span.first_ts);
    insert.bind(4, span.last_ts);
    insert.bind(5, static_cast<std::int64_t>(span.events));
    insert.run();
  }
  add_blocked(names);
  name_as_seen();
}

// A task that was only blocked fired no event of its own.
void RunWriter::add_blocked(const std::map<std::int32_t, std::string>& names) {
  Statement table(db_,
                  "SELECT table_name FROM event_format WHERE event = 'wbscope:blocked'"
                  " AND table_name IS NOT NULL AND 2 = (SELECT count(*) FROM event_field"
                  " WHERE event = 'wbscope:blocked' AND kind = 'integer'"
                  " AND column_name IN ('pid', 'blocked_ns'))");
  if (!table.step()) return;
  db_.exec("INSERT OR IGNORE INTO task SELECT pid, NULL, min(ts - blocked_ns), max(ts), 0 FROM " +
           quoted(table.text(0)) + " WHERE pid IS NOT NULL GROUP BY pid");
  Statement update(db_, "UPDATE task SET comm = ? WHERE tid = ? AND comm IS NULL");
  for (const auto& [tid, name] : names) {
    update.bind_text(1, name);
    update.bind(2, std::int64_t{tid});
    update.run();
  }
}

// The last name seen is what a task was called after its last exec. The saved name may be newer;
// it is taken for older where the task was seen under it before it had another one: the kernel
// saves no name while the lock of its names is held (trace_save_cmdline()).
void RunWriter::name_as_seen() {
  struct Columns {
    std::string table, comm, tid;
  };
  std::vector<Columns> all;
  for (const auto& [comm, tid] : kCommPairs) {
    Statement tables(db_,
                     "SELECT f.table_name, a.column_name, b.column_name"
                     " FROM event_field a JOIN event_field b USING (event)"
                     " JOIN event_format f USING (event)"
                     " WHERE f.table_name IS NOT NULL AND a.field = ? AND a.kind = 'text'"
                     " AND b.field = ? AND b.kind = 'integer'"
                     // Its comm is of who waits, its pid of whom it waits for.
                     " AND a.event NOT LIKE '%sched_process_wait' ORDER BY a.event");
    tables.bind_text(1, comm);
    tables.bind_text(2, tid);
    while (tables.step()) {
      all.push_back({quoted(tables.text(0)), quoted(tables.text(1)), quoted(tables.text(2))});
    }
  }
  // Sorting the rows of all tasks would take longer than finding the few that matter.
  db_.exec("CREATE TEMP TABLE name_doubt (tid INTEGER PRIMARY KEY)");
  for (const auto& [table, comm, tid] : all) {
    db_.exec("INSERT OR IGNORE INTO name_doubt SELECT DISTINCT t.tid FROM " + table +
             " AS e CROSS JOIN task AS t ON t.tid = e." + tid +
             " WHERE t.tid <> 0 AND e." + comm + " <> coalesce(t.comm, '')");
  }
  db_.exec("CREATE TEMP TABLE name_seen (tid INTEGER, comm TEXT, ts INTEGER)");
  for (const auto& [table, comm, tid] : all) {
    db_.exec("INSERT INTO name_seen SELECT " + tid + ", " + comm + ", max(ts) FROM " + table +
             " WHERE " + tid + " IN (SELECT tid FROM name_doubt) AND " + comm +
             " <> '' GROUP BY 1, 2");
  }
  db_.exec("CREATE INDEX temp.name_seen_tid ON name_seen (tid)");
  db_.exec(
      "UPDATE task SET comm = n.comm"
      " FROM (SELECT tid, comm, max(ts) AS ts FROM name_seen GROUP BY tid) AS n"
      " WHERE task.tid = n.tid AND (task.comm IS NULL OR EXISTS"
      " (SELECT 1 FROM name_seen AS s WHERE s.tid = n.tid AND s.comm = task.comm"
      " AND s.ts < n.ts))");
  db_.exec("DROP TABLE name_seen");
  db_.exec("DROP TABLE name_doubt");
}

void RunWriter::lost_events(std::uint32_t cpu, std::uint32_t buffer,
                            const std::vector<LostGap>& gaps) {
  Statement insert(db_, "INSERT INTO lost_events VALUES (?, ?, ?, ?)");
  for (const auto& gap : gaps) {
    insert.bind(1, gap.ts);
    if (cpu == EventLead::kNoCpu) {
      insert.bind_null(2);
    } else {
      insert.bind(2, std::int64_t{cpu});
    }
    insert.bind(3, std::int64_t{buffer});
    if (gap.count) {
      insert.bind(4, static_cast<std::int64_t>(*gap.count));
    } else {
      insert.bind_null(4);
    }
    insert.run();
  }
}

void RunWriter::bad_stamps(const std::vector<BadStamp>& bad) {
  Statement insert(db_, "INSERT INTO bad_stamp VALUES (?, ?, ?, ?, ?, ?)");
  for (const BadStamp& each : bad) {
    insert.bind(1, each.ts_found);
    insert.bind(2, each.ts);
    if (each.cpu == EventLead::kNoCpu) {
      insert.bind_null(3);
    } else {
      insert.bind(3, std::int64_t{each.cpu});
    }
    insert.bind(4, std::int64_t{each.buffer});
    insert.bind(5, static_cast<std::int64_t>(each.records));
    insert.bind_text(6, each.place);
    insert.run();
  }
}

void RunWriter::printk_formats(const PrintkFormats& formats) {
  Statement insert(db_, "INSERT INTO printk_format VALUES (?, ?)");
  for (const auto& [address, format] : formats) {
    const std::string text = replace_invalid_utf8(format);
    insert.bind(1, static_cast<std::int64_t>(address));
    insert.bind_text(2, text);
    insert.run();
  }
}

void RunWriter::guests(const TraceInfo& info) {
  Statement guest(db_, "INSERT INTO guest VALUES (?, ?, ?)");
  Statement vcpu(db_, "INSERT INTO guest_vcpu VALUES (?, ?, ?)");
  std::int64_t id = 0;
  for (const auto& each : info.guests) {
    const std::string name = replace_invalid_utf8(each.name);
    const std::string trace_id = hex_id(each.trace_id);
    guest.bind(1, id);
    guest.bind_text(2, name);
    guest.bind_text(3, trace_id);
    guest.run();
    for (const auto& [number, tid] : each.vcpu_tids) {
      vcpu.bind(1, id);
      vcpu.bind(2, std::int64_t{number});
      vcpu.bind(3, std::int64_t{tid});
      vcpu.run();
    }
    ++id;
  }
}

void RunWriter::clock_shifts(const TraceInfo& info) {
  Statement insert(db_, "INSERT INTO clock_shift VALUES (?, ?, ?, ?, ?)");
  std::int64_t cpu = 0;
  for (const auto& samples : info.shift.cpus) {
    for (const auto& sample : samples) {
      insert.bind(1, cpu);
      insert.bind(2, sample.time);
      insert.bind(3, sample.offset);
      insert.bind(4, sample.scaling);
      insert.bind(5, std::int64_t{sample.fraction});
      insert.run();
    }
    ++cpu;
  }
}

void RunWriter::ingest_stats(const Counters& counters) {
  Statement insert(db_, "INSERT INTO ingest_stats VALUES (?, ?, ?, ?)");
  for (std::size_t i = 0; i < kCounterInfo.size(); ++i) {
    const auto& info = kCounterInfo[i];
    insert.bind_text(1, info.name);
    insert.bind_text(2, severity_name(info.severity));
    insert.bind(3, static_cast<std::int64_t>(counters.get(static_cast<Counter>(i))));
    insert.bind_text(4, info.description);
    insert.run();
  }
}

}  // namespace wbscope
