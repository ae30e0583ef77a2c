// SPDX-License-Identifier: Apache-2.0
// RunWriter: the tables of a run database that are not events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/input_file.h"
#include "format/event_catalog.h"
#include "format/printk_text.h"
#include "pipeline/cpu_stream.h"
#include "pipeline/stamp_check.h"
#include "sink/database.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// Raised with every change of a table or column; see docs/schema.md.
inline constexpr std::int64_t kSchemaVersion = 7;

struct EventTotals {
  std::vector<std::uint64_t> counted;  // by index in EventCatalog::events
  std::vector<std::uint64_t> loaded;
};

// The third word of "Linux host 6.1.0 x86_64".
[[nodiscard]] std::string kernel_release(const std::string& uname);
// The id of a recording, as trace-cmd prints it.
[[nodiscard]] std::string hex_id(std::uint64_t id);

class RunWriter {
 public:
  // Makes the tables.
  explicit RunWriter(Database& db);

  // Which program read which file.
  void source(const InputFile& file, const std::string& hash);
  void meta(std::string_view key, std::string_view value);
  void meta(std::string_view key, std::int64_t value);

  // Of the events that can have been recorded; none given: all.
  void formats(const EventCatalog& catalog, const std::vector<bool>& wanted,
               const std::vector<bool>& recordable = {});
  void event_counts(const EventCatalog& catalog, const std::vector<bool>& wanted,
                    const EventTotals& totals);
  void buffers(const TraceInfo& info);
  void cpu_stats(const TraceInfo& info);
  // Names come from saved_cmdlines and from loaded events that carry a pid
  // beside a comm (sched_switch and the like).
  void tasks(const std::map<std::int32_t, TaskSpan>& spans, std::string_view cmdlines);
  void tasks(const std::map<std::int32_t, TaskSpan>& spans,
             std::map<std::int32_t, std::string> names);
  void lost_events(std::uint32_t cpu, std::uint32_t buffer, const std::vector<LostGap>& gaps);
  void bad_stamps(const std::vector<BadStamp>& bad);
  void printk_formats(const PrintkFormats& formats);
  // The guests that the host recorded with, and the corrections of this
  // guest's own clock.
  void guests(const TraceInfo& info);
  void clock_shifts(const TraceInfo& info);
  void ingest_stats(const Counters& counters);

 private:
  void add_blocked(const std::map<std::int32_t, std::string>& names);
  void name_as_seen();

  Database& db_;
};

}  // namespace wbscope
