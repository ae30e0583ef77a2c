// SPDX-License-Identifier: Apache-2.0
// TraceWriter: all records of trace.dat files into one Perfetto trace.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/input_file.h"
#include "event_choice.h"
#include "format/event_catalog.h"
#include "perfetto/event_shape.h"
#include "perfetto/ftrace_packets.h"
#include "perfetto/packet_output.h"
#include "perfetto/symbol_names.h"
#include "perfetto/trace_machines.h"
#include "pipeline/cpu_stream.h"
#include "pipeline/stamp_check.h"
#include "time_bounds.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// What was written, and what readers are to know of it.
struct TraceWritten {
  std::uint64_t events = 0;   // in the files
  std::uint64_t written = 0;
  std::uint64_t before_zero = 0;  // left out: readers drop them
  std::uint64_t on_high_cpus = 0;  // left out: readers would refuse the trace
  std::uint64_t lost_gaps = 0;
  std::uint64_t lost_known = 0;
  // By source.
  std::vector<std::map<std::string, std::uint64_t>> left_out;  // "system:name.field": records
  std::vector<std::vector<Message>> damage;
  Counters counters;
};

struct TraceWriterOptions {
  const EventChoice& choice;  // the events that are written
  TimeBounds bounds;          // and the part of the trace
  bool compat = false;        // generic events in the form that readers before v50 know
  unsigned threads = 1;
  bool is_small = false;  // compressed: a third of the size, and three times the work
  bool has_clocks = false;  // write_clocks() was called before
};

class TraceWriter {
 public:
  using OnProgress = std::function<void(std::uint64_t done_bytes)>;  // may throw to stop

  // Reads what events are. Pre: the process has one thread, see ChildWork. Raises:
  // Error when nothing of a file can be read.
  explicit TraceWriter(TraceSources sources);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  [[nodiscard]] const TraceSources& sources() const noexcept {
    return sources_;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  // Appends everything to output, which may have other packets before and
  // after. Pre: called once. Raises: Error.
  [[nodiscard]] TraceWritten write(PacketOutput& output, const TraceWriterOptions& options,
                                   const OnProgress& on_progress);

 private:
  struct Lane;
  class SpareStrings;
  using Plans = std::vector<StampPlan>;  // by source: stamps to put right

  struct First {
    std::int64_t ts = 0;
    // The first records of CPUs are far from each other: whether stamps are wrong,
    // only a look at the whole file tells.
    bool is_doubtful = false;
  };
  [[nodiscard]] First prepare(const TraceWriterOptions& options, const Plans& plans);
  [[nodiscard]] First first_ts(const Plans& plans) const;
  void open_lanes(const TimeRange& range, const Plans& plans);
  struct Worker;
  void write_lanes(PacketOutput& output, std::vector<Worker>& workers, bool is_small,
                   const OnProgress& on_progress);
  [[nodiscard]] Plans judge(const TimeBounds& bounds) const;
  [[nodiscard]] StampPlan scan(std::size_t source) const;
  void write_heads(PacketOutput& output);
  [[nodiscard]] TraceWritten add_up(PacketOutput& output, bool whole);

  TraceSources sources_;
  struct Parts;
  std::vector<std::unique_ptr<Parts>> parts_;  // by source
  std::vector<std::unique_ptr<Lane>> lanes_;
  bool is_part_ = false;
};

}  // namespace wbscope
