// SPDX-License-Identifier: Apache-2.0
// The job "timeline": rows of timeline views become a Perfetto trace.
#include "timeline.h"

#include <algorithm>
#include <array>

#include "base/input_file.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "sink/database.h"
#include "sink/track_event_writer.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxSetupBytes = 16u << 20;
constexpr std::uint64_t kInterruptEvery = 4096;

// The columns of every timeline view; rank may be left out.
enum Column : std::size_t { kTs, kDur, kTrack, kName, kValue, kUnit, kArgs, kRank, kColumns };
constexpr std::array<std::string_view, kColumns> kColumnNames{
    "ts", "dur", "track", "name", "value", "unit", "args", "rank"};

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
                                       ", wanted ts, dur, track, name, value, unit, args",
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
};

MetaValues read_meta(Database& db) {
  MetaValues meta;
  Statement rows(db, "SELECT key, value FROM meta WHERE key IN ('clock', 'first_ts')");
  while (rows.step()) {
    if (rows.text(0) == "clock") meta.clock = std::string(rows.text(1));
    if (rows.text(0) == "first_ts") meta.first_ts = rows.integer(1);
  }
  return meta;
}

std::uint64_t export_view(Database& db, const std::string& view, TrackEventWriter& out) {
  Statement rows(db, "SELECT * FROM " + quoted(view) + " ORDER BY ts");
  const auto at = find_columns(rows, view);
  std::uint64_t written = 0;
  while (rows.step()) {
    if (written % kInterruptEvery == 0) throw_if_interrupted();
    if (rows.is_null(at[kTs]) || rows.is_null(at[kTrack])) continue;
    const std::int64_t ts = rows.integer(at[kTs]);
    const bool is_counter = !rows.is_null(at[kValue]);
    const auto unit =
        is_counter ? std::optional<std::string_view>(rows.text(at[kUnit])) : std::nullopt;
    const auto rank = at[kRank] < 0 || rows.is_null(at[kRank])
                          ? std::nullopt
                          : std::optional<std::int64_t>(rows.integer(at[kRank]));
    const std::uint64_t track = out.track(rows.text(at[kTrack]), unit, rank);
    if (!is_counter && rows.is_null(at[kDur])) {
      out.instant(track, ts, rows.text(at[kName]), rows.text(at[kArgs]));
    } else if (!is_counter) {
      out.slice(track, ts, rows.integer(at[kDur]), rows.text(at[kName]), rows.text(at[kArgs]));
    } else if (rows.is_integer(at[kValue])) {
      out.counter(track, ts, rows.integer(at[kValue]));
    } else {
      out.counter(track, ts, rows.real(at[kValue]));
    }
    ++written;
  }
  return written;
}

}  // namespace

void export_timeline(const TimelineOptions& options, const Reporter& reporter) {
  const InputFile exists(options.database);  // the better message when it does not
  OutputFile output(options.output, options.force);
  Database db(options.database, options.database, Database::Mode::kReadOnly);
  if (!options.setup_path.empty()) db.exec(read_text_file(options.setup_path, kMaxSetupBytes));
  const MetaValues meta = read_meta(db);
  TrackEventWriter out(output.temp_path(), output.path(), meta.clock, meta.first_ts);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < options.views.size(); ++i) {
    reporter.progress(i, options.views.size());
    written += export_view(db, options.views[i], out);
  }
  out.finish();
  output.commit();
  reporter.done(output.path(), written, written, false);
}

}  // namespace wbscope
