// SPDX-License-Identifier: Apache-2.0
// The trace.dat files of one Perfetto trace, and the machines that they are in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "format/event_catalog.h"
#include "perfetto/event_shape.h"
#include "perfetto/packet_output.h"
#include "perfetto/trace_clock.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// One trace.dat while it is written. Each of its buffers with records is a machine
// of the Perfetto trace: readers have no other place for a second set of CPUs.
struct TraceSource {
  explicit TraceSource(std::string path) : file(std::move(path)) {}

  InputFile file;
  TraceInfo info;
  EventCatalog catalog;             // made by TraceWriter
  std::vector<EventShapes> shapes;  // and these
  std::vector<std::optional<std::uint32_t>> machines;  // by buffer; none: it is empty
};
using TraceSources = std::vector<std::unique_ptr<TraceSource>>;

// Reads what the containers say, and numbers the machines. Raises: Error when a
// file cannot be read.
[[nodiscard]] TraceSources open_sources(const std::vector<std::string>& paths);

[[nodiscard]] std::size_t machines_count(const TraceSources& sources);

// What readers call a machine; "": the one that the trace is of.
[[nodiscard]] std::string machine_name(const TraceSources& sources, const TraceSource& source,
                                       std::size_t buffer);

// The clock that a source's times are of, as the Perfetto trace declares it.
[[nodiscard]] TraceClock clock_of(const TraceSources& sources, const TraceSource& source);

// Declares the clocks of all machines. They come before the first time of any:
// each declaration may change which clock the trace is shown in, and a machine that
// was related to another one is not related again. ts: a time of the trace.
void write_clocks(const TraceSources& sources, std::int64_t ts, PacketOutput& output);

}  // namespace wbscope
