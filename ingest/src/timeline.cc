// SPDX-License-Identifier: Apache-2.0
// The job "timeline": rows of timeline views become a Perfetto trace.
#include "timeline.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "event_choice.h"
#include "perfetto/packet_output.h"
#include "perfetto/trace_writer.h"
#include "sink/database.h"
#include "sink/track_event_writer.h"
#include "sink/track_tree.h"
#include "timeline_plan.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxSetupBytes = 16u << 20;
constexpr std::uint64_t kInterruptEvery = 4096;
// As many steps of time as the timeline has pixels on a wide screen.
constexpr std::int64_t kSteps = 2048;

// The columns of every timeline view; those from kRank on may be left out.
enum Column : std::size_t {
  kTs, kDur, kTrack, kName, kValue, kUnit, kRank, kTid, kFlows, kColumns
};
constexpr std::array<std::string_view, kColumns> kColumnNames{
    "ts", "dur", "track", "name", "value", "unit", "rank", "tid", "flows"};
// Columns that are named so are the arguments of a slice, without this word.
constexpr std::string_view kArgument = "arg_";
// And of this one each line is: NAME=VALUE.
constexpr std::string_view kMoreArguments = "arg_more";

std::array<int, kColumns> find_columns(const Statement& rows, const std::string& view) {
  std::array<int, kColumns> at{};
  at.fill(-1);
  for (int i = 0; i < rows.columns(); ++i) {
    const auto name = rows.column_name(i);
    const auto* found = std::find(kColumnNames.begin(), kColumnNames.end(), name);
    if (found != kColumnNames.end()) at[static_cast<std::size_t>(found - kColumnNames.begin())] = i;
  }
  for (std::size_t c = 0; c < kRank; ++c) {
    if (at[c] >= 0) continue;
    throw Error(Exit::kUsage, {.slug = "not-a-timeline",
                               .object = view,
                               .text = "view has no column " + std::string(kColumnNames[c]) +
                                       ", wanted ts, dur, track, name, value, unit",
                               .at = {},
                               .have = {},
                               .effect = "nothing was written",
                               .fix = "see sql/timelines/ for examples"});
  }
  return at;
}

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

// The numbers in text, divided by commas or blanks; what is none is left out.
void read_flows(std::string_view text, std::vector<std::uint64_t>& flows) {
  flows.clear();
  const char* at = text.data();
  const char* last = at + text.size();
  while (at != last) {
    std::uint64_t flow = 0;
    const auto found = std::from_chars(at, last, flow);
    if (found.ec == std::errc()) flows.push_back(flow);
    at = found.ptr == at ? at + 1 : found.ptr;
  }
}

class ViewExport {
 public:
  ViewExport(Database& db, const std::string& view, const ViewPlan& plan)
      : plan_(plan.tracks),
        rows_(db, "SELECT * FROM " + quoted(view) + (plan.is_sorted ? "" : " ORDER BY ts, dur DESC")),
        at_(find_columns(rows_, view)) {
    for (int i = 0; i < rows_.columns(); ++i) {
      const auto name = rows_.column_name(i);
      if (name == kMoreArguments) {
        more_at_ = i;
      } else if (name.starts_with(kArgument)) {
        argument_at_.emplace_back(name.substr(kArgument.size()), i);
      }
    }
  }

  std::uint64_t run(TrackTree& tree) {
    std::uint64_t written = 0;
    while (rows_.step()) {
      if (written % kInterruptEvery == 0) throw_if_interrupted();
      if (is_null(kTs) || is_null(kTrack)) continue;
      if (is_null(kValue) && !is_null(kUnit)) continue;  // of a counter, and not recorded
      put(tree);
      ++written;
    }
    return written;
  }

 private:
  [[nodiscard]] bool is_null(Column c) const { return at_[c] < 0 || rows_.is_null(at_[c]); }
  [[nodiscard]] std::string_view text(Column c) const {
    return is_null(c) ? std::string_view{} : rows_.text(at_[c]);
  }
  [[nodiscard]] std::optional<std::int64_t> integer(Column c) const {
    return is_null(c) ? std::nullopt : std::optional(rows_.integer(at_[c]));
  }

  void put(TrackTree& tree) {
    TrackRow row{.ts = rows_.integer(at_[kTs]),
                 .dur = integer(kDur),
                 .tid = integer(kTid),
                 .rank = integer(kRank),
                 .track = text(kTrack),
                 .name = text(kName),
                 .unit = text(kUnit),
                 .args = {},
                 .flows = {}};
    if (!is_null(kValue)) {
      if (rows_.is_integer(at_[kValue])) {
        tree.counter(plan_, row, rows_.integer(at_[kValue]));
      } else {
        tree.counter(plan_, row, rows_.real(at_[kValue]));
      }
      return;
    }
    read_arguments();
    row.args = args_;
    if (row.dur) {
      read_flows(text(kFlows), flows_);
      row.flows = flows_;
      tree.slice(plan_, row);
    } else {
      tree.instant(plan_, row);
    }
  }

  // Those that are known in this row; their texts live until the next step.
  void read_arguments() {
    args_.clear();
    for (const auto& [key, at] : argument_at_) {
      if (rows_.is_null(at)) continue;
      if (rows_.is_integer(at)) {
        args_.push_back({key, rows_.integer(at)});
      } else if (rows_.is_real(at)) {
        args_.push_back({key, rows_.real(at)});
      } else {
        args_.push_back({key, rows_.text(at)});
      }
    }
    if (more_at_ < 0 || rows_.is_null(more_at_)) return;
    for (std::string_view left = rows_.text(more_at_); !left.empty();) {
      const std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(left.size(), line.size() + 1));
      const std::size_t middle = line.find('=');
      if (middle == std::string_view::npos || middle == 0) continue;
      args_.push_back({line.substr(0, middle), line.substr(middle + 1)});
    }
  }

  const TrackPlan& plan_;
  Statement rows_;
  std::array<int, kColumns> at_;
  std::vector<std::pair<std::string, int>> argument_at_;
  int more_at_ = -1;
  std::vector<TrackArgument> args_;
  std::vector<std::uint64_t> flows_;
};

// The events that the tracks were made of, for those who want to look closer.
// What is wrong with the trace was told when the database was made.
std::uint64_t write_events(const TimelineOptions& options, PacketOutput& packets) {
  TraceWriter writer({options.trace});
  const EventChoice choice(options.globs, false);
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const TraceWritten events =
      writer.write(packets, {.choice = choice, .bounds = {}, .threads = threads, .is_small = true},
                   [](std::uint64_t) { throw_if_interrupted(); });
  return events.written;
}

}  // namespace

void export_timeline(const TimelineOptions& options, const Reporter& reporter) {
  const InputFile exists(options.database);  // the better message when it does not
  OutputFile output(options.output, options.force);
  Database db(options.database, options.database, Database::Mode::kReadOnly);
  db.limit(SqlLimits::from_environment());
  if (!options.setup_path.empty()) db.exec(read_text_file(options.setup_path, kMaxSetupBytes));
  const MetaValues meta = read_meta(db);
  PacketOutput packets(output.temp_path(), output.path());
  const std::uint32_t sequence = options.sequence == 0 ? kTrackEventSequence : options.sequence;
  // The clock is told of where the times are drawn: of several timelines in one trace, it never
  // goes back.
  const auto begin_ts = static_cast<std::int64_t>(static_cast<std::uint64_t>(meta.first_ts) +
                                                  static_cast<std::uint64_t>(options.shift_ns));
  TrackEventWriter out(packets, meta.clock, begin_ts, sequence);
  const std::int64_t step_ns =
      meta.last_ts > meta.first_ts
          ? static_cast<std::int64_t>((static_cast<std::uint64_t>(meta.last_ts) -
                                       static_cast<std::uint64_t>(meta.first_ts)) /
                                      kSteps)
          : 0;
  TrackTree tree(
      out, read_groups(db),
      {.root = options.root, .shift_ns = options.shift_ns, .step_ns = step_ns});
  read_threads(db, tree);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < options.views.size(); ++i) {
    reporter.progress(i, options.views.size());
    const ViewPlan plan = read_view_plan(db, options.views[i]);
    written += ViewExport(db, options.views[i], plan).run(tree);
  }
  tree.finish();
  out.finish();
  if (!options.trace.empty()) written += write_events(options, packets);
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
