// SPDX-License-Identifier: Apache-2.0
// All records of trace.dat files into one Perfetto trace.
#include "perfetto/trace_writer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "bad_stamps.h"
#include "base/interrupt.h"
#include "damage.h"
#include "format/printk_text.h"
#include "perfetto/compressed_packets.h"
#include "perfetto/event_encoder.h"
#include "perfetto/protos.h"
#include "perfetto/setup_packets.h"
#include "pipeline/lane_queue.h"
#include "pipeline/worker_pool.h"
#include "selection.h"
#include "sink/saved_text.h"
#include "trace_source.h"

namespace wbscope {
namespace {

constexpr std::size_t kBlockBytes = 512u << 10;  // of records, for each thread

}  // namespace

// What belongs to a source while it is written.
struct TraceWriter::Parts {
  Parts(const TraceSource& source, const std::vector<bool>& chosen)
      : wanted(chosen),
        printk(parse_printk_formats(source.info.printk_formats)),
        symbols(source.file, source.info),
        dispatch(source.catalog, chosen) {}

  std::vector<bool> wanted;  // by event
  PrintkFormats printk;
  SymbolNames symbols;
  EventDispatch dispatch;
  std::atomic<std::size_t> interned = 0;
  std::vector<std::unique_ptr<FtraceTrace>> traces;  // by buffer
};

// One CPU of one buffer.
struct TraceWriter::Lane {
  std::size_t source;
  CpuStream stream;
  FtracePackets packets;
  std::string made;  // packets of the last step
  std::uint64_t consumed = 0;
};

// Strings that are used again, with the memory that they have.
class TraceWriter::SpareStrings {
 public:
  [[nodiscard]] std::string take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return {};
    std::string last = std::move(spare_.back());
    spare_.pop_back();
    return last;
  }
  void give_back(std::string used) {
    used.clear();
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(used));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> spare_;
};

TraceWriter::TraceWriter(TraceSources sources) : sources_(std::move(sources)) {
  for (const auto& source : sources_) {
    source->catalog = build_event_catalog(source->info);
    if (source->info.buffers.empty() || !source->catalog.has_formats()) {
      throw_nothing_readable(source->file, source->info);
    }
  }
}

TraceWriter::~TraceWriter() = default;

std::uint64_t TraceWriter::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& source : sources_) sum += source->file.size();
  return sum;
}

void TraceWriter::write_heads(PacketOutput& output) {
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const TraceSource& source = *sources_[s];
    for (std::size_t b = 0; b < source.info.buffers.size(); ++b) {
      if (!source.machines[b]) continue;
      const FtraceTrace& trace = *parts_[s]->traces[b];
      const PacketPlace place{.machine = *source.machines[b], .sequence = trace.sequence};
      write_machine(source.info, machine_page_bytes(source.info),
                    machine_name(sources_, source, b), place, output);
    }
    if (s == 0) {
      write_recorded_events(source.catalog, parts_[s]->wanted, is_part_,
                            {.machine = 0, .sequence = kFirstFtraceSequence}, output);
    }
  }
}

TraceWriter::First TraceWriter::prepare(const TraceWriterOptions& options, const Plans& plans) {
  lanes_.clear();
  parts_.clear();
  std::uint32_t next_number = protos::event::kFirstGeneric;
  for (const auto& source : sources_) {
    std::vector<bool> wanted;
    for (const auto& event : source->catalog.events) {
      wanted.push_back(options.choice.has(event.system, event.name));
    }
    source->shapes = shape_events(
        source->catalog,
        {.compat = options.compat, .has_symbols = source->info.kallsyms.has_value()}, next_number);
    parts_.push_back(std::make_unique<Parts>(*source, wanted));
  }
  is_part_ = options.bounds.from || options.bounds.to;
  const First first = first_ts(plans);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const TraceSource& source = *sources_[s];
    Parts& parts = *parts_[s];
    for (std::size_t b = 0; b < source.info.buffers.size(); ++b) {
      parts.traces.push_back(std::unique_ptr<FtraceTrace>(
          new FtraceTrace{.catalog = source.catalog,
                          .shapes = source.shapes,
                          .symbols = parts.symbols,
                          .interned = parts.interned,
                          .clock = clock_of(sources_, source),
                          .clock_pair_ts = std::max<std::int64_t>(first.ts, 1),
                          .sequence = kFirstFtraceSequence + source.machines[b].value_or(0)}));
    }
  }
  open_lanes(time_range(options.bounds, first.ts), plans);
  return first;
}

// Of the first record of all files; 0 when there is none.
TraceWriter::First TraceWriter::first_ts(const Plans& plans) const {
  std::optional<std::int64_t> first;
  bool is_doubtful = false;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (!plans[s].is_empty()) {
      first = std::min(first.value_or(plans[s].first_ts), plans[s].first_ts);
      continue;
    }
    const TraceSource& source = *sources_[s];
    std::optional<std::int64_t> of_source;
    for (std::uint32_t b = 0; b < source.info.buffers.size(); ++b) {
      for (const auto& region : source.info.buffers[b].regions) {
        if (region.bytes == 0) continue;
        CpuStream stream(source.file, source.info, b, region, parts_[s]->dispatch, kBlockBytes);
        const auto ts = stream.first_record_ts();
        if (!ts) continue;
        is_doubtful = is_doubtful || is_long_step(of_source.value_or(*ts), *ts);
        of_source = std::min(of_source.value_or(*ts), *ts);
      }
    }
    if (of_source) first = std::min(first.value_or(*of_source), *of_source);
  }
  return {.ts = first.value_or(0), .is_doubtful = is_doubtful};
}

void TraceWriter::open_lanes(const TimeRange& range, const Plans& plans) {
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const TraceSource& source = *sources_[s];
    std::size_t number = 0;
    for (std::uint32_t b = 0; b < source.info.buffers.size(); ++b) {
      for (const auto& region : source.info.buffers[b].regions) {
        if (region.bytes == 0) continue;
        const StampFixes* fixes = plans[s].is_empty() ? nullptr : &plans[s].streams[number];
        ++number;
        lanes_.push_back(std::unique_ptr<Lane>(new Lane{
            .source = s,
            .stream = CpuStream(source.file, source.info, b, region, parts_[s]->dispatch,
                                kBlockBytes, range, fixes),
            .packets = FtracePackets(*parts_[s]->traces[b], region.cpu, *source.machines[b]),
            .made = {}}));
      }
    }
  }
}

StampPlan TraceWriter::scan(std::size_t s) const {
  const TraceSource& source = *sources_[s];
  const EventDispatch none(source.catalog, std::vector<bool>(source.catalog.events.size(), false));
  std::vector<StampStream> stamps;
  RecordBlock unused;
  for (std::uint32_t b = 0; b < source.info.buffers.size(); ++b) {
    for (const auto& region : source.info.buffers[b].regions) {
      if (region.bytes == 0) continue;
      CpuStream stream(source.file, source.info, b, region, none, kBlockBytes);
      while (stream.fill(unused)) throw_if_interrupted();
      stamps.push_back(stream.stamps());
    }
  }
  return judge_stamps(stamps, source.info);
}

// Which stamps of what was read are wrong.
TraceWriter::Plans TraceWriter::judge(const TimeBounds& bounds) const {
  const bool whole = !bounds.from && !bounds.to;
  Plans plans(sources_.size());
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (!whole) {
      plans[s] = scan(s);
      continue;
    }
    std::vector<StampStream> stamps;
    for (const auto& lane : lanes_) {
      if (lane->source == s) stamps.push_back(lane->stream.stamps());
    }
    plans[s] = judge_stamps(stamps, sources_[s]->info);
  }
  return plans;
}

// A thread of those that write.
struct TraceWriter::Worker {
  RecordBlock block;
  PacketBuffers buffers;
  std::string compressed;
  std::vector<std::unique_ptr<EventEncoder>> encoders;  // by source
};

void TraceWriter::write_lanes(PacketOutput& output, std::vector<Worker>& workers,
                              bool is_small, const OnProgress& on_progress) {
  for (auto& worker : workers) {
    worker.encoders.clear();
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      worker.encoders.push_back(std::make_unique<EventEncoder>(
          sources_[s]->catalog, sources_[s]->info.order, parts_[s]->printk,
          [this, s](std::uint64_t address) { return parts_[s]->symbols.name(address); }));
    }
  }
  std::atomic<std::uint64_t> consumed = 0;
  SpareStrings spare;
  const auto step = [&](std::size_t index, std::size_t number) -> LaneQueue::Step {
    Lane& lane = *lanes_[index];
    Worker& worker = workers[number];
    worker.block.clear();
    const bool more = lane.stream.fill(worker.block);
    if (lane.stream.cpu() < FtracePackets::kMaxCpus) {
      lane.made = spare.take();
      lane.packets.write(worker.block, *worker.encoders[lane.source], worker.buffers, lane.made);
      if (is_small && !lane.made.empty()) {
        compress_packets(lane.made, worker.compressed);
        lane.made = worker.compressed;
      }
    }
    consumed += lane.stream.consumed() - lane.consumed;
    lane.consumed = lane.stream.consumed();
    const auto reached = worker.block.refs.empty() ? INT64_MIN : worker.block.refs.back().ts;
    return {.reached = reached, .more = more};
  };
  const auto give_out = [&](std::size_t index) {
    std::string made = std::exchange(lanes_[index]->made, {});
    output.append({made});
    spare.give_back(std::move(made));
  };
  WorkerPool pool(static_cast<unsigned>(workers.size()));
  LaneQueue queue(pool, workers.size());
  queue.run(lanes_.size(), step, give_out, [&] { on_progress(consumed); });
}

TraceWritten TraceWriter::write(PacketOutput& output, const TraceWriterOptions& options,
                                const OnProgress& on_progress) {
  const std::uint64_t begin = output.bytes();
  const bool whole = !options.bounds.from && !options.bounds.to;
  std::vector<Worker> workers(std::max(1u, options.threads));
  Plans plans(sources_.size());
  const auto write_once = [&] {
    First first = prepare(options, plans);
    if (!options.has_clocks) write_clocks(sources_, first.ts, output);
    write_heads(output);
    write_lanes(output, workers, options.is_small, on_progress);
    for (const auto& lane : lanes_) first.is_doubtful |= lane->stream.is_doubtful();
    return first.is_doubtful;
  };
  // Stamps that are wrong are seen when everything was read; then again, with
  // those put right.
  if (write_once() || whole) {
    plans = judge(options.bounds);
    const bool is_bad = std::any_of(plans.begin(), plans.end(),
                                    [](const StampPlan& plan) { return !plan.is_empty(); });
    if (is_bad) {
      output.cut(begin);
      (void)write_once();
    }
  }
  TraceWritten written = add_up(output, whole);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    std::uint64_t records = 0;
    for (const auto& lane : lanes_) {
      if (lane->source == s) records += lane->stream.counters().get(Counter::kBadStamps);
    }
    if (records > 0) written.damage[s].push_back(bad_stamps_message(plans[s], records));
  }
  for (const auto& worker : workers) {
    for (const auto& encoder : worker.encoders) written.counters.merge(encoder->counters());
  }
  return written;
}

// What all streams say, added up, and the packets that could not be written
// before.
TraceWritten TraceWriter::add_up(PacketOutput& output, bool whole) {
  TraceWritten all;
  all.left_out.resize(sources_.size());
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    TraceSource& source = *sources_[s];
    const auto names = parse_saved_cmdlines(source.info.cmdlines);
    std::vector<std::map<std::int32_t, TaskSpan>> tasks(source.info.buffers.size());
    std::map<std::uint32_t, std::uint64_t> lost;  // of machine 0, by CPU
    for (const auto& lane : lanes_) {
      if (lane->source != s) continue;
      const CpuStream& stream = lane->stream;
      for (const auto& [event, count] : stream.counts()) {
        all.events += count;
        if (stream.cpu() >= FtracePackets::kMaxCpus) all.on_high_cpus += count;
        if (!lane->packets.events().contains(event)) continue;
        const EventPlan& plan = source.catalog.events[event];
        for (const auto& field : source.shapes[event].usual.left_out) {
          all.left_out[s][plan.full_name() + "." + field] += count;
        }
      }
      for (const auto& [tid, span] : stream.tasks()) {
        const auto [place, is_new] = tasks[stream.buffer()].try_emplace(tid, span);
        place->second.first_ts = std::min(place->second.first_ts, span.first_ts);
        place->second.last_ts = std::max(place->second.last_ts, span.last_ts);
      }
      for (const auto& gap : stream.lost()) {
        ++all.lost_gaps;
        all.lost_known += gap.count.value_or(0);
        if (source.machines[stream.buffer()] == 0) lost[stream.cpu()] += gap.count.value_or(0);
      }
      all.written += lane->packets.written();
      all.before_zero += lane->packets.dropped();
      all.counters.merge(stream.counters());
      if (stream.damage()) source.info.damage.push_back(*stream.damage());
    }
    if (parts_[s]->symbols.damage()) source.info.damage.push_back(*parts_[s]->symbols.damage());
    add_change(source.info.damage, source.file);
    all.damage.push_back(source.info.damage);
    for (std::size_t b = 0; b < tasks.size(); ++b) {
      if (!source.machines[b]) continue;
      const FtraceTrace& trace = *parts_[s]->traces[b];
      const PacketPlace place{.machine = *source.machines[b], .sequence = trace.sequence};
      write_thread_names(tasks[b], names, trace.clock, place, output);
      // What the kernel counted is of the whole recording.
      if (place.machine == 0 && whole) write_cpu_stats(source.info, lost, place, output);
    }
  }
  return all;
}

}  // namespace wbscope
