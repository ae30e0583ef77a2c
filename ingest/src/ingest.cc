// SPDX-License-Identifier: Apache-2.0
// The job "sqlite": container -> formats -> pages in parallel -> tables.
#include "ingest.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "bad_stamps.h"
#include "base/input_file.h"
#include "base/interrupt.h"
#include "damage.h"
#include "event_choice.h"
#include "format/event_catalog.h"
#include "ingest_text.h"
#include "pipeline/merge.h"
#include "run_file.h"
#include "selection.h"
#include "sink/event_writer.h"
#include "sink/run_writer.h"
#include "sink/symbols.h"
#include "trace_source.h"
#include "tracedat/clock_correction.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

constexpr std::size_t kBlockBudget = 24u << 20;  // for all CPUs together
constexpr std::size_t kMaxBlockBytes = 512u << 10;
constexpr std::size_t kMinBlockBytes = 4u << 10;
constexpr auto kProgressEvery = std::chrono::milliseconds(200);

std::vector<bool> choose_events(const EventCatalog& catalog, const IngestOptions& options) {
  std::vector<EventName> names;
  for (const auto& event : catalog.events) names.push_back({event.system, event.name});
  require_matches(options.asked, names);
  const EventChoice choice(options.globs, options.all);
  std::vector<bool> wanted;
  for (const auto& event : catalog.events) wanted.push_back(choice.has(event.system, event.name));
  return wanted;
}

using Streams = std::vector<std::unique_ptr<CpuStream>>;

// plan: what to put right, empty for nothing.
Streams open_streams(const InputFile& file, const TraceInfo& info, const EventDispatch& dispatch,
                     const TimeRange& range, const StampPlan& plan) {
  std::size_t regions = 0;
  for (const auto& buffer : info.buffers) regions += buffer.regions.size();
  const std::size_t block_bytes =
      std::clamp(kBlockBudget / (2 * std::max<std::size_t>(regions, 1)), kMinBlockBytes,
                 kMaxBlockBytes);
  Streams streams;
  for (std::uint32_t b = 0; b < info.buffers.size(); ++b) {
    for (const auto& region : info.buffers[b].regions) {
      if (region.bytes == 0) continue;
      const StampFixes* fixes = plan.is_empty() ? nullptr : &plan.streams[streams.size()];
      streams.push_back(std::make_unique<CpuStream>(file, info, b, region, dispatch, block_bytes,
                                                    range, fixes));
    }
  }
  return streams;
}

// What --time-range asks for, on the trace clock.
struct RangeFound {
  TimeRange range;
  bool is_doubtful = false;  // the first records of CPUs are far from each other
};

RangeFound find_range(const IngestOptions& options, const InputFile& file, const TraceInfo& info,
                      const EventDispatch& dispatch, const StampPlan& plan) {
  if (!needs_start(options)) return {.range = time_range(options, 0)};
  if (!plan.is_empty()) return {.range = time_range(options, plan.first_ts)};
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> last;
  for (const auto& stream : open_streams(file, info, dispatch, {}, plan)) {
    const auto ts = stream->first_record_ts();
    if (!ts) continue;
    first = std::min(first.value_or(*ts), *ts);
    last = std::max(last.value_or(*ts), *ts);
  }
  return {.range = time_range(options, first.value_or(0)),
          .is_doubtful = first && is_long_step(*first, *last)};
}

StampPlan judge_stamps(const Streams& streams, const TraceInfo& info) {
  std::vector<StampStream> stamps;
  for (const auto& stream : streams) stamps.push_back(stream->stamps());
  return judge_stamps(stamps, info);
}

// Of the whole file, where only a part of it was read.
StampPlan scan_stamps(const InputFile& file, const TraceInfo& info, const EventCatalog& catalog,
                      unsigned threads) {
  const EventDispatch none(catalog, std::vector<bool>(catalog.events.size(), false));
  WorkerPool pool(threads);
  Merger merger(open_streams(file, info, none, {}, {}), pool);
  (void)merger.run([](const CpuStream&, const RecordRef&, const RecordBlock&) { return true; },
                   [] { throw_if_interrupted(); });
  return judge_stamps(merger.streams(), info);
}

// What all streams say, added up.
struct Totals {
  EventTotals events;
  std::uint64_t counted = 0;
  std::uint64_t loaded = 0;
  std::map<std::int32_t, TaskSpan> tasks;
  Counters counters;
  std::uint64_t lost_gaps = 0;
  std::uint64_t lost_known = 0;
};

Totals add_up(const Streams& streams, const EventWriter& writer, TraceInfo& info) {
  Totals totals;
  totals.events.loaded = writer.loaded();
  totals.events.counted.resize(totals.events.loaded.size());
  totals.counters.merge(writer.counters());
  for (const auto& stream : streams) {
    for (const auto& [event, count] : stream->counts()) {
      totals.events.counted[event] += count;
      totals.counted += count;
    }
    for (const auto& [tid, span] : stream->tasks()) {
      const auto [place, is_new] = totals.tasks.try_emplace(tid, span);
      if (is_new) continue;
      place->second.first_ts = std::min(place->second.first_ts, span.first_ts);
      place->second.last_ts = std::max(place->second.last_ts, span.last_ts);
      place->second.events += span.events;
    }
    for (const auto& gap : stream->lost()) {
      ++totals.lost_gaps;
      totals.lost_known += gap.count.value_or(0);
    }
    totals.counters.merge(stream->counters());
    if (stream->damage()) info.damage.push_back(*stream->damage());
  }
  for (const std::uint64_t n : totals.events.loaded) totals.loaded += n;
  return totals;
}

void write_meta(RunWriter& run, const InputFile& file, const TraceInfo& info,
                const std::string& hash) {
  run.source(file, hash);
  run.meta("format", "trace.dat v" + std::to_string(info.version));
  run.meta("compression", info.compression_name);
  run.meta("endian", info.order == ByteOrder::kBig ? "big" : "little");
  run.meta("long_bytes", std::int64_t{info.long_bytes});
  run.meta("page_bytes", std::int64_t{machine_page_bytes(info)});
  run.meta("cpus_count", std::int64_t{info.cpus_count});
  run.meta("clock", info.clock);
  run.meta("clock_unit", counts_ticks(info, info.clock) ? "ticks" : "ns");
  run.meta("clock_scope", info.clock == "local" || info.clock == "perf" ? "cpu" : "machine");
  if (info.trace_id != 0) run.meta("trace_id", hex_id(info.trace_id));
  if (!info.shift.cpus.empty()) {
    run.meta("host_trace_id", hex_id(info.shift.peer_trace_id));
    run.meta("clock_shift", (info.shift.flags & ClockShift::kInterpolate) != 0 ? "interpolated"
                                                                               : "stepwise");
  }
  if (info.has_tsc) {
    run.meta("tsc_multiplier", std::int64_t{info.tsc_multiplier});
    run.meta("tsc_shift", std::int64_t{info.tsc_shift});
    run.meta("tsc_offset", static_cast<std::int64_t>(info.tsc_offset));
  }
  run.meta("recorder_version", info.recorder_version);
  run.meta("uname", info.uname);
  run.meta("kernel_release", kernel_release(info.uname));
}

// Names are a help: without them the trace is as good as before.
void write_symbols(Database& db, const InputFile& file, const AddressSet& addresses,
                   TraceInfo& info) {
  if (addresses.all().empty()) return;
  try {
    write_symbols(db, addresses, read_kallsyms(file, info));
  } catch (const ParseError& error) {
    info.damage.push_back(error.message());
  }
}

void write_totals(RunWriter& run, const Totals& totals, const TraceInfo& info) {
  run.meta("events_count", static_cast<std::int64_t>(totals.counted));
  run.meta("loaded_count", static_cast<std::int64_t>(totals.loaded));
  run.meta("lost_gaps_count", static_cast<std::int64_t>(totals.lost_gaps));
  run.meta("lost_events_count", static_cast<std::int64_t>(totals.lost_known));
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  for (const auto& [tid, span] : totals.tasks) {
    first = std::min(first, span.first_ts);
    last = std::max(last, span.last_ts);
  }
  if (!totals.tasks.empty()) {
    run.meta("first_ts", first);
    run.meta("last_ts", last);
  }
  write_damage(run, info.damage);
}

// Reads the trace into the output. Where that shows stamps that plan does not
// know to be wrong, the output is thrown away, and what is wrong is returned.
StampPlan ingest(const InputFile& file, const IngestOptions& options, const StampPlan& plan,
                 std::shared_future<std::string>& hash, const Reporter& reporter) {
  RunFile output(options.output, options.force, file, options.no_unpack_limit);
  Database& db = output.db();
  TraceInfo info = read_info(file);
  if (options.no_unpack_limit) info.budget->lift();
  EventCatalog catalog = build_event_catalog(info);
  add_flags(options.plan.flags, catalog);
  if (info.buffers.empty() || !catalog.has_formats()) throw_nothing_readable(file, info);
  const std::vector<bool> wanted = choose_events(catalog, options);
  const EventDispatch dispatch(catalog, wanted);
  // By their names: Clang 14 does not capture structured bindings.
  const RangeFound asked = find_range(options, file, info, dispatch, plan);
  TimeRange range = asked.range;
  bool is_doubtful = asked.is_doubtful;

  const unsigned threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  RunWriter run(db);
  const PrintkFormats printk = parse_printk_formats(info.printk_formats);
  std::optional<PagesOf> pages;
  if (!options.inserts) {
    pages = {.path = output.temp_path(),
             .name = output.path(),
             .threads = threads,
             .budget = &output.budget()};
  }
  EventWriter writer(db, catalog, wanted, info.order, printk, options.plan.previous, pages);

  // Who reads a part does not want to wait for the whole file.
  const bool part = !range.is_whole() || options.limit;
  if (!hash.valid()) {
    hash = std::async(std::launch::async, [&file, part] { return part ? "" : file.hash(); });
  }
  StampPlan found;
  Totals totals;
  const auto read = [&](const EventDispatch& events, const Merger::OnRecord& on_record) {
    WorkerPool pool(threads);
    Merger merger(open_streams(file, info, events, range, plan), pool);
    auto last_report = std::chrono::steady_clock::now();
    const bool whole = merger.run(on_record, [&] {
      throw_if_interrupted();
      const auto now = std::chrono::steady_clock::now();
      if (now - last_report < kProgressEvery) return;
      last_report = now;
      reporter.progress(merger.consumed(), file.size());
    });
    for (merger.stop(); const auto& stream : merger.streams()) {
      is_doubtful = is_doubtful || stream->is_doubtful();
    }
    if (!whole) return false;
    if (plan.is_empty() && range.is_whole()) found = judge_stamps(merger.streams(), info);
    writer.finish();
    totals = add_up(merger.streams(), writer, info);
    for (const auto& stream : merger.streams()) {
      run.lost_events(stream->cpu(), stream->buffer(), stream->lost());
    }
    return true;
  };
  std::uint64_t room = options.limit.value_or(UINT64_MAX);
  std::int64_t last_ts = 0;
  const bool whole = read(dispatch, [&](const CpuStream& stream, const RecordRef& ref,
                                        const RecordBlock& block) {
    if (room == 0) return false;
    --room;
    last_ts = ref.ts;
    writer.write(ref.event, ref.ts, stream.cpu(), ref.tid, stream.buffer(),
                 block.bytes(ref));
    return true;
  });
  if (plan.is_empty() && is_doubtful && !(whole && range.is_whole())) {
    found = scan_stamps(file, info, catalog, threads);
  }
  if (!found.is_empty()) return found;
  if (!whole) {
    // The CPUs had been read ahead of the last row. Count again, up to its time.
    range.end = after(last_ts, 1);
    (void)read(EventDispatch(catalog, std::vector<bool>(wanted.size(), false)),
               [](const CpuStream&, const RecordRef&, const RecordBlock&) { return true; });
  }
  if (totals.counted == 0 && !info.damage.empty()) throw_nothing_readable(file, info);
  totals.counters.add(Counter::kFormatsNotParsed,
                      static_cast<std::uint64_t>(std::count_if(
                          catalog.events.begin(), catalog.events.end(), [](const auto& event) {
                            return event.status == FormatStatus::kRaw;
                          })));
  if (const auto records = totals.counters.get(Counter::kBadStamps); records > 0) {
    info.damage.push_back(bad_stamps_message(plan, records));
    run.bad_stamps(plan.bad);
  }
  add_change(info.damage, file);
  run.formats(catalog, wanted, recordable_events(catalog, totals.events.counted));
  options.plan.indexes.create(db, catalog, wanted);
  run.event_counts(catalog, wanted, totals.events);
  run.buffers(info);
  run.printk_formats(printk);
  write_symbols(db, file, writer.addresses(), info);
  run.guests(info);
  run.clock_shifts(info);
  run.cpu_stats(info);
  run.tasks(totals.tasks, info.cmdlines);
  run.ingest_stats(totals.counters);
  write_meta(run, file, info, hash.get());
  write_totals(run, totals, info);
  write_selection(run, range, whole ? std::nullopt : options.limit);

  const std::vector<Message> warnings = output.finish(options.source);
  warn_of_damage(reporter, file, info.damage, totals.counted);
  for (const auto& warning : warnings) reporter.warning(warning);
  reporter.done(output.path(), totals.counted, totals.loaded, !info.damage.empty());
  return {};
}

}  // namespace

void ingest_to_sqlite(const IngestOptions& options, const Reporter& reporter) {
  const InputFile file(trace_path(options.source));
  if (is_text(file)) {
    ingest_text(file, options, reporter);
    return;
  }
  std::shared_future<std::string> hash;
  const StampPlan plan = ingest(file, options, {}, hash, reporter);
  if (!plan.is_empty()) (void)ingest(file, options, plan, hash, reporter);
}

}  // namespace wbscope
