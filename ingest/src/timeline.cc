// SPDX-License-Identifier: Apache-2.0
// The job "timeline": rows of timeline views become a Perfetto trace.
#include "timeline.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "event_choice.h"
#include "perfetto/packet_output.h"
#include "perfetto/trace_machines.h"
#include "perfetto/trace_writer.h"
#include "sink/database.h"
#include "sink/track_event_writer.h"
#include "sink/track_tree.h"
#include "timeline_lanes.h"
#include "timeline_plan.h"
#include "timeline_rows.h"

namespace wbscope {
namespace {

constexpr std::uint64_t kInterruptEvery = 4096;
constexpr int kWaitMs = 50;
// As many steps of time as the timeline has pixels on a wide screen.
constexpr std::int64_t kSteps = 2048;

struct MetaValues {
  std::string clock;
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
};

MetaValues read_meta(Database& db) {
  MetaValues meta;
  Statement rows(db, "SELECT key, value FROM meta WHERE key IN ('clock', 'first_ts', 'last_ts')");
  while (rows.step()) {
    if (rows.text(0) == "clock") meta.clock = std::string(rows.text(1));
    if (rows.text(0) == "first_ts") meta.first_ts = rows.integer(1);
    if (rows.text(0) == "last_ts") meta.last_ts = rows.integer(1);
  }
  return meta;
}

// What stdin says, to its end. It may come late: on_wait is called meanwhile.
std::string read_stdin(const std::function<void()>& on_wait) {
  std::string text;
  char part[1 << 14];
  while (text.size() <= kMaxSetupBytes) {
    pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kWaitMs) <= 0) {
      on_wait();
      continue;
    }
    const ssize_t bytes = ::read(STDIN_FILENO, part, sizeof(part));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(part, static_cast<std::size_t>(bytes));
  }
  throw Error(Exit::kInput, {.slug = "too-big",
                             .object = "stdin",
                             .text = "has more than " + std::to_string(kMaxSetupBytes) +
                                     " bytes of SQL",
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = {}});
}

// The script of the main connection; those of lanes that wait for one come behind
// it, each after a NUL.
std::string read_setup(const TimelineOptions& options, TimelineLanes& lanes) {
  if (options.setup_path.empty()) return {};
  if (options.setup_path != "-") return read_text_file(options.setup_path, kMaxSetupBytes);
  std::string text = read_stdin([&lanes] {
    throw_if_interrupted();
    lanes.check();
  });
  std::deque<std::string> others;
  for (std::size_t end = text.rfind('\0'); end != std::string::npos; end = text.rfind('\0')) {
    others.push_front(text.substr(end + 1));
    text.resize(end);
  }
  lanes.give(std::move(others));
  return text;
}

// db is needed for views that are in no lane only.
std::uint64_t draw_view(Database* db, const std::string& view, const ViewPlan& plan,
                        TimelineLanes& lanes, TrackTree& tree) {
  std::uint64_t drawn = 0;
  DrawnRow row;
  if (lanes.has(view)) {
    while (std::optional<RowBatch> batch = lanes.next(view)) {
      throw_if_interrupted();
      for (; batch->next(row); ++drawn) draw(tree, plan.tracks, row);
    }
    return drawn;
  }
  ViewRows rows(*db, view, plan.is_sorted);
  for (; rows.next(row); ++drawn) {
    if (drawn % kInterruptEvery == 0) throw_if_interrupted();
    draw(tree, plan.tracks, row);
  }
  return drawn;
}

// The events that the tracks were made of, for those who want to look closer.
// What is wrong with the trace was told when the database was made.
std::uint64_t write_events(TraceSources traces, const TimelineOptions& options,
                           PacketOutput& packets) {
  TraceWriter writer(std::move(traces));
  const EventChoice choice(options.globs, false);
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const TraceWritten events =
      writer.write(packets,
                   {.choice = choice,
                    .bounds = options.events_part,
                    .threads = threads,
                    .is_small = true,
                    .has_clocks = true},
                   [](std::uint64_t) { throw_if_interrupted(); });
  return events.written;
}

}  // namespace

void export_timeline(const TimelineOptions& options, const Reporter& reporter) {
  const InputFile database(options.database);  // the better message when it is not there
  OutputFile output(options.output, options.force);
  const SqlLimits limits = SqlLimits::from_environment();
  TimelineLanes lanes(options.database, limits, options.lanes, options.threads);
  const std::string setup = read_setup(options, lanes);
  auto db =
      std::make_unique<Database>(options.database, options.database, Database::Mode::kReadOnly);
  db->limit(limits);
  db->exec(setup);
  const MetaValues meta = read_meta(*db);
  WriteBudget budget(database.path(), {});
  budget.add_read(database.size());
  TraceSources traces;
  if (!options.trace.empty()) traces = open_sources({options.trace});
  for (const auto& trace : traces) budget.add_read(trace->file.size());
  PacketOutput packets(output.temp_path(), output.path(), &budget);
  const std::uint32_t sequence = options.sequence == 0 ? kTrackEventSequence : options.sequence;
  // The clock is told of where the times are drawn: of several timelines in one trace, it never
  // goes back.
  const auto begin_ts = static_cast<std::int64_t>(static_cast<std::uint64_t>(meta.first_ts) +
                                                  static_cast<std::uint64_t>(options.shift_ns));
  write_clocks(traces, begin_ts, packets);
  TrackEventWriter out(packets, trace_clock(meta.clock, machines_count(traces)), begin_ts,
                       sequence);
  const std::int64_t step_ns =
      meta.last_ts > meta.first_ts
          ? static_cast<std::int64_t>((static_cast<std::uint64_t>(meta.last_ts) -
                                       static_cast<std::uint64_t>(meta.first_ts)) /
                                      kSteps)
          : 0;
  TrackTree tree(
      out, read_groups(*db),
      {.root = options.root,
       .mark = options.mark,
       .shift_ns = options.shift_ns, .step_ns = step_ns},
      read_units(*db));
  read_threads(*db, tree);
  std::vector<ViewPlan> plans;
  std::vector<std::string> others;
  for (const std::string& view : options.views) {
    plans.push_back(read_view_plan(*db, view));
    if (!lanes.has(view)) others.push_back(view);
  }
  // Its rows do not wait for those of a lane that are drawn before.
  lanes.take(db, std::move(others));
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < options.views.size(); ++i) {
    reporter.progress(i, options.views.size());
    written += draw_view(db.get(), options.views[i], plans[i], lanes, tree);
  }
  tree.finish();
  out.finish();
  lanes.end();  // the formats of events are tried in a child process
  if (!traces.empty()) written += write_events(std::move(traces), options, packets);
  packets.finish();
  if (tree.slices_left_out() > 0) {
    reporter.warning({.slug = "slices-left-out",
                      .object = output.path(),
                      .text = std::to_string(tree.slices_left_out()) +
                              " slices are not drawn: each would overlap " +
                              std::to_string(TrackTree::kMostLanes) + " others of its track",
                      .at = {},
                      .have = {},
                      .effect = {},
                      .fix = {}});
  }
  output.commit();
  reporter.done(output.path(), written, written, false);
}

}  // namespace wbscope
