// SPDX-License-Identifier: Apache-2.0
// The trace.dat files of one Perfetto trace, and the machines that they are in it.
#include "perfetto/trace_machines.h"

#include <algorithm>

#include "trace_source.h"

namespace wbscope {
namespace {

std::size_t machines_of(const TraceSource& source) {
  return static_cast<std::size_t>(
      std::count_if(source.machines.begin(), source.machines.end(),
                    [](const auto& machine) { return machine.has_value(); }));
}

// Machine 0, where the tracks of a timeline are, is the first file's: its top
// buffer, or the first one with records. Those of a recording with -B are all in an
// instance.
void number_machines(TraceSources& sources) {
  std::uint32_t next = 1;
  for (const auto& source : sources) {
    const auto& buffers = source->info.buffers;
    const auto find = [&](const auto& is_wanted) {
      return std::find_if(buffers.begin(), buffers.end(), is_wanted);
    };
    auto main = buffers.end();
    if (source == sources.front()) {
      main = find([](const auto& each) { return each.name.empty() && each.has_pages(); });
      if (main == buffers.end()) main = find([](const auto& each) { return each.has_pages(); });
      if (main == buffers.end()) main = buffers.begin();
    }
    for (auto each = buffers.begin(); each != buffers.end(); ++each) {
      std::optional<std::uint32_t> machine;
      if (each == main) {
        machine = 0;
      } else if (each->has_pages()) {
        machine = next++;
      }
      source->machines.push_back(machine);
    }
  }
}

// As the host's file calls it, else by its own file.
std::string guest_name(const TraceInfo& host, const TraceSource& guest) {
  for (const auto& each : host.guests) {
    if (each.trace_id == guest.info.trace_id) return "guest " + each.name;
  }
  return guest.file.name();
}

}  // namespace

TraceSources open_sources(const std::vector<std::string>& paths) {
  TraceSources sources;
  for (const auto& path : paths) {
    sources.push_back(std::make_unique<TraceSource>(trace_path(path)));
    sources.back()->info = read_info(sources.back()->file);
  }
  number_machines(sources);
  return sources;
}

std::size_t machines_count(const TraceSources& sources) {
  std::size_t sum = 0;
  for (const auto& source : sources) sum += machines_of(*source);
  return sum;
}

std::string machine_name(const TraceSources& sources, const TraceSource& source,
                         std::size_t buffer) {
  const TraceSource& host = *sources.front();
  std::string name = &source == &host ? "" : guest_name(host.info, source);
  const std::string& instance = source.info.buffers[buffer].name;
  // The only buffer of a file needs no name of its own.
  if (instance.empty() || machines_of(source) < 2) return name;
  return name + (name.empty() ? "" : ", ") + "instance " + instance;
}

TraceClock clock_of(const TraceSources& sources, const TraceSource& source) {
  // Counters that became ns are no longer what their name says.
  return trace_clock(source.info.has_tsc ? "" : source.info.clock, machines_count(sources));
}

void write_clocks(const TraceSources& sources, std::int64_t ts, PacketOutput& output) {
  for (const auto& source : sources) {
    const TraceClock clock = clock_of(sources, *source);
    for (const auto& machine : source->machines) {
      if (!machine) continue;
      output.append_packet(clock_packet(clock, std::max<std::int64_t>(ts, 1),
                                        kFirstFtraceSequence + *machine, *machine));
    }
  }
}

}  // namespace wbscope
