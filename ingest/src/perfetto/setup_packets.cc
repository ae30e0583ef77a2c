// SPDX-License-Identifier: Apache-2.0
// Packets that are no events.
#include "perfetto/setup_packets.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "base/utf8.h"
#include "perfetto/protos.h"
#include "sink/saved_text.h"

namespace wbscope {
namespace {

using protozero::pbf_writer;
using namespace protos;

void add_place(const PacketPlace& place, pbf_writer& out) {
  out.add_uint32(packet::kSequenceId, place.sequence);
  if (place.machine != 0) out.add_uint32(packet::kMachineId, place.machine);
}

std::string take_word(std::string_view& text) {
  const auto end = text.find(' ');
  const auto word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return replace_invalid_utf8(word);
}

// "Linux host 6.1.0 x86_64", as trace-cmd saves it.
void add_utsname(std::string_view uname, pbf_writer& system) {
  if (uname.empty()) return;
  const std::string sysname = take_word(uname);
  (void)take_word(uname);  // the host's name
  const std::string release = take_word(uname);
  const auto space = uname.rfind(' ');
  pbf_writer out(system, system_info::kUtsname);
  out.add_string(system_info::kSysname, sysname);
  if (space != std::string_view::npos) {
    out.add_string(system_info::kVersion, replace_invalid_utf8(uname.substr(0, space)));
    uname.remove_prefix(space + 1);
  }
  out.add_string(system_info::kRelease, release);
  out.add_string(system_info::kMachine, replace_invalid_utf8(uname));
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                    : std::nullopt;
}

}  // namespace

void write_machine(const TraceInfo& info, std::uint32_t page_bytes, std::string_view name,
                   const PacketPlace& place, PacketOutput& output) {
  std::string bytes;
  pbf_writer out(bytes);
  {
    pbf_writer system(out, packet::kSystemInfo);
    add_utsname(info.uname, system);
    system.add_string(system_info::kServiceVersion, "wbscope " WBSCOPE_VERSION);
    if (page_bytes != 0) system.add_uint32(system_info::kPageSize, page_bytes);
    if (info.cpus_count != 0) system.add_uint32(system_info::kCpus, info.cpus_count);
    if (!name.empty()) system.add_string(system_info::kMachineName, replace_invalid_utf8(name));
  }
  add_place(place, out);
  out.add_uint32(packet::kSequenceFlags, packet::kStateCleared);
  output.append_packet(bytes);
}

void write_recorded_events(const EventCatalog& catalog, const std::vector<bool>& wanted,
                           bool is_part, const PacketPlace& place, PacketOutput& output) {
  const bool is_told = !catalog.has_all_formats();
  if (!is_told && !is_part) return;
  std::string bytes;
  pbf_writer out(bytes);
  {
    pbf_writer config(out, packet::kTraceConfig);
    // metadata.unique_session_name, which perfetto/reader.py and perfetto.toml read.
    if (is_part) config.add_string(trace_config::kUniqueSessionName, "part of a trace");
    pbf_writer source(config, trace_config::kDataSources);
    pbf_writer inner(source, trace_config::kConfig);
    inner.add_string(trace_config::kName, "linux.ftrace");
    pbf_writer ftrace(inner, trace_config::kFtraceConfig);
    for (std::size_t i = 0; i < catalog.events.size(); ++i) {
      const EventPlan& event = catalog.events[i];
      if (event.status == FormatStatus::kNone || !wanted[i] || !is_told) continue;
      ftrace.add_string(trace_config::kFtraceEvents,
                        replace_invalid_utf8(event.system + "/" + event.name));
    }
  }
  add_place(place, out);
  output.append_packet(bytes);
}

void write_thread_names(const std::map<std::int32_t, TaskSpan>& tasks,
                        const std::map<std::int32_t, std::string>& names, const TraceClock& clock,
                        const PacketPlace& place, PacketOutput& output) {
  std::string bytes;
  std::string all;
  for (const auto& [tid, span] : tasks) {
    const auto name = names.find(tid);
    if (tid <= 0 || name == names.end()) continue;
    const auto first = std::max<std::int64_t>(span.first_ts, 0);
    const auto last = std::max<std::int64_t>(span.last_ts, 0);
    for (const auto ts : {first, last}) {
      bytes.clear();
      pbf_writer out(bytes);
      out.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(ts));
      out.add_uint32(packet::kTimestampClockId, clock.packets);
      add_place(place, out);
      {
        pbf_writer rename(out, packet::kTaskRename);
        rename.add_int64(task_rename::kTid, tid);
        rename.add_string(task_rename::kComm, name->second);
      }
      pbf_writer(all).add_message(1, bytes);  // Trace.packet
      if (first == last) break;
    }
  }
  output.append({all});
}

void write_cpu_stats(const TraceInfo& info, const std::map<std::uint32_t, std::uint64_t>& lost,
                     const PacketPlace& place, PacketOutput& output) {
  using namespace ftrace_stats;
  // By CPU: the fields of FtraceCpuStats.
  std::map<std::uint64_t, std::map<std::uint32_t, std::uint64_t>> stats;
  for (const auto& text : info.cpu_stats) {
    const CpuStat stat = parse_cpu_stat(text);
    if (stat.cpu < 0 || stat.cpu >= std::int64_t{kMaxCpus}) continue;
    auto& fields = stats[static_cast<std::uint64_t>(stat.cpu)];
    for (const auto& [key, value] : stat.values) {
      const auto number = number_in(value);
      if (!number) continue;
      if (key == "entries") fields[kEntries] = *number;
      if (key == "overrun") fields[kOverrun] = *number;
      if (key == "commit overrun") fields[kCommitOverrun] = *number;
      if (key == "bytes") fields[kBytesRead] = *number;
      if (key == "dropped events") fields[kDroppedEvents] = *number;
      if (key == "read events") fields[kReadEvents] = *number;
    }
  }
  for (const auto& [cpu, count] : lost) {
    auto& overrun = stats[cpu][kOverrun];
    overrun = std::max(overrun, count);
  }
  if (stats.empty()) return;
  for (const bool at_end : {false, true}) {
    std::string bytes;
    pbf_writer out(bytes);
    {
      pbf_writer ftrace(out, packet::kFtraceStats);
      ftrace.add_enum(kPhase, static_cast<std::int32_t>(at_end ? kEndOfTrace : kStartOfTrace));
      for (const auto& [cpu, fields] : stats) {
        pbf_writer entry(ftrace, kCpuStats);
        entry.add_uint64(kCpu, cpu);
        for (const auto& [field, value] : fields) entry.add_uint64(field, at_end ? value : 0);
      }
    }
    add_place(place, out);
    output.append_packet(bytes);
  }
}

}  // namespace wbscope
