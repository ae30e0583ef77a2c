// SPDX-License-Identifier: Apache-2.0
// Packets that are no events: of which machine a trace is, what was recorded,
// what its tasks are called, what the kernel counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/event_catalog.h"
#include "perfetto/packet_output.h"
#include "perfetto/trace_clock.h"
#include "pipeline/cpu_stream.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// Which machine of the trace packets are of, and the sequence they belong to.
struct PacketPlace {
  std::uint32_t machine = 0;  // 0: the one that the trace is of
  std::uint32_t sequence = kFirstFtraceSequence;
};

// Of the kernel, and what readers call the machine ("": by its number). It
// also begins the sequence: what it interns is good from here.
void write_machine(const TraceInfo& info, std::uint32_t page_bytes, std::string_view name,
                   const PacketPlace& place, PacketOutput& output);

// The events that the recorder saved formats of and that are wanted here, as a
// configuration that asked for them; none where the formats say nothing. is_part:
// the session's name says that the trace is a part of another.
void write_recorded_events(const EventCatalog& catalog, const std::vector<bool>& wanted,
                           bool is_part, const PacketPlace& place, PacketOutput& output);

// Names of threads, which belong to no process that the trace tells. Each is
// told when the thread is first and last seen.
void write_thread_names(const std::map<std::int32_t, TaskSpan>& tasks,
                        const std::map<std::int32_t, std::string>& names, const TraceClock& clock,
                        const PacketPlace& place, PacketOutput& output);

// What the kernel counted for each CPU, lost records among it. lost: by CPU,
// what the pages say.
void write_cpu_stats(const TraceInfo& info, const std::map<std::uint32_t, std::uint64_t>& lost,
                     const PacketPlace& place, PacketOutput& output);

}  // namespace wbscope
