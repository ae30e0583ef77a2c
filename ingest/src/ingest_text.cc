// SPDX-License-Identifier: Apache-2.0
// The job "sqlite" for text: lines -> references -> tables.
#include "ingest_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>

#include "base/interrupt.h"
#include "event_choice.h"
#include "run_file.h"
#include "sink/run_writer.h"
#include "text/line_source.h"
#include "text/text_reader.h"

namespace wbscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFormatsBytes = 64u << 20;
constexpr std::size_t kMaxUnameBytes = 4096;
constexpr std::size_t kMaxGaps = 1u << 20;
constexpr std::uint32_t kLinesBetweenChecks = 4096;
constexpr auto kProgressEvery = std::chrono::milliseconds(200);

// Records into a run database, those of the chosen time and number.
class DatabaseSink final : public TextSink {
 public:
  DatabaseSink(Database& db, const IngestOptions& options)
      : writer_(db),
        choice_(options.globs, options.all),
        from_(options.from),
        to_(options.to),
        room_(options.limit.value_or(UINT64_MAX)) {}

  bool wanted(std::string_view system, std::string_view name) override {
    return choice_.has(system, name);
  }
  std::uint32_t event(std::string_view system, std::string_view name) override {
    return writer_.event(system, name);
  }
  std::uint32_t field(std::uint32_t event, const ValueField& field) override {
    return writer_.field(event, field);
  }
  void describe(std::uint32_t event, std::string format,
                std::vector<EnumLabel> labels) override {
    writer_.describe(event, std::move(format), std::move(labels));
  }
  void write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
             std::span<const ValueWriter::Cell> cells) override {
    if (!in_range(ts)) return;
    if (room_ == 0) {
      cut_ = true;
      return;
    }
    --room_;
    writer_.write(event, ts, cpu, tid, 0, cells);
  }
  void count(std::uint32_t event, std::int64_t ts, std::int32_t tid) override {
    if (in_range(ts) && !cut_) writer_.count(event, ts, tid);
  }
  void name_task(std::int32_t tid, std::string_view comm) override {
    writer_.name_task(tid, comm);
  }
  void lost(std::int64_t ts, std::uint32_t cpu, std::optional<std::uint64_t> count) override {
    if (!in_range(ts) || gaps_seen_ >= kMaxGaps) return;
    ++gaps_seen_;
    lost_known_ += count.value_or(0);
    gaps_[cpu].push_back({.ts = ts, .count = count});
  }

  [[nodiscard]] ValueWriter& writer() noexcept { return writer_; }
  // More records than --limit: the rest need not be read.
  [[nodiscard]] bool is_full() const noexcept { return cut_; }
  [[nodiscard]] bool is_part() const noexcept { return cut_ || from_ || to_; }
  [[nodiscard]] const std::map<std::uint32_t, std::vector<LostGap>>& gaps() const noexcept {
    return gaps_;
  }
  [[nodiscard]] std::uint64_t gaps_count() const noexcept { return gaps_seen_; }
  [[nodiscard]] std::uint64_t lost_known() const noexcept { return lost_known_; }

 private:
  bool in_range(std::int64_t ts) {
    if (!from_ && !to_) return true;
    if (!start_) start_ = ts;
    const auto since = [&](const TimeBound& bound) { return bound.after_start ? ts - *start_ : ts; };
    return (!from_ || since(*from_) >= from_->ns) && (!to_ || since(*to_) < to_->ns);
  }

  ValueWriter writer_;
  EventChoice choice_;
  std::optional<TimeBound> from_;
  std::optional<TimeBound> to_;
  std::optional<std::int64_t> start_;
  std::uint64_t room_;
  bool cut_ = false;
  std::map<std::uint32_t, std::vector<LostGap>> gaps_;
  std::uint64_t gaps_seen_ = 0;
  std::uint64_t lost_known_ = 0;
};

const char* format_name(TextStyle style) {
  switch (style) {
    case TextStyle::kFtrace:
      return "ftrace text";
    case TextStyle::kTraceCmd:
      return "trace-cmd report text";
    case TextStyle::kPerf:
      return "perf script text";
    case TextStyle::kLog:
      return "kernel log text";
  }
  return "ftrace text";
}

[[noreturn]] void throw_no_trace(const InputFile& file, const TextFacts& facts) {
  std::string found = "found a text in which " + std::to_string(facts.not_understood) + " of " +
                      std::to_string(facts.lines) + " lines are no record of a trace";
  Message message{.slug = "not-a-trace",
                  .object = file.path(),
                  .text = std::move(found),
                  .at = {},
                  .have = {},
                  .effect = "nothing was written",
                  .fix = "give a trace.dat, or text of the kernel's file trace, trace-cmd report,"
                         " perf script or a kernel log with lines that wbscope knows"};
  if (facts.first_not_understood != 0) {
    message.at = "line " + std::to_string(facts.first_not_understood) + ": \"" +
                 facts.not_understood_text + "\"";
  }
  throw Error(Exit::kInput, message);
}

// Every line of the file through the reader, until it has enough.
void read_lines(const InputFile& file, TextReader& reader, const DatabaseSink& sink,
                const Reporter& reporter, Counters& counters) {
  std::uint64_t offset = 0;
  LineSource lines([&file, &offset](std::span<std::byte> out) {
    const std::size_t got = file.read_some(offset, out);
    offset += got;
    return got;
  });
  auto last_report = std::chrono::steady_clock::now();
  std::uint32_t until_check = kLinesBetweenChecks;
  bool was_sampling = true;
  for (std::string_view line; !sink.is_full() && lines.next(line);) {
    reader.line(line);
    if (was_sampling && !reader.is_sampling()) {
      was_sampling = false;
      if (!reader.is_trace()) throw_no_trace(file, reader.facts());
    }
    if (--until_check != 0) continue;
    until_check = kLinesBetweenChecks;
    throw_if_interrupted();
    const auto now = std::chrono::steady_clock::now();
    if (now - last_report < kProgressEvery) continue;
    last_report = now;
    reporter.progress(lines.consumed(), file.size());
  }
  reader.finish();
  const TextFacts& facts = reader.facts();
  if (!reader.is_trace() || facts.records == 0) throw_no_trace(file, facts);
  counters.add(Counter::kTextLines, facts.lines);
  counters.add(Counter::kTextGeneric, facts.generic);
  counters.add(Counter::kTextContinuations, facts.continuations);
  counters.add(Counter::kTextOther, facts.other);
  counters.add(Counter::kTextNotUnderstood, facts.not_understood);
  counters.add(Counter::kTextCut, lines.cut_lines());
  counters.add(Counter::kTextOverwritten, facts.overwritten);
  counters.add(Counter::kTimeBackwards, facts.time_backwards);
  counters.add(Counter::kLostGaps, sink.gaps_count());
}

// The kernel of a run folder, from its file uname: text names none.
std::string uname_of(const std::string& source) {
  std::error_code ignored;
  const fs::path path = fs::path(source) / "uname";
  if (!fs::is_directory(source, ignored) || !fs::is_regular_file(path, ignored)) return {};
  try {
    const std::string text = read_text_file(path.string(), kMaxUnameBytes);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};  // load_sidecars() says what is wrong with it
  }
}

void write_meta(RunWriter& run, const TextFacts& facts, const std::string& uname) {
  run.meta("format", format_name(facts.style));
  if (facts.cpus != 0) run.meta("cpus_count", std::int64_t{facts.cpus});
  run.meta("clock_unit", !facts.has_time ? "none" : facts.is_ticks ? "ticks" : "ns");
  if (facts.is_ticks) run.meta("clock", "unknown");
  run.meta("tracer", facts.tracer);
  if (!uname.empty()) {
    run.meta("uname", uname);
    run.meta("kernel_release", kernel_release(uname));
  }
}

void write_tables(RunWriter& run, DatabaseSink& sink, const TextFacts& facts) {
  const ValueWriter& writer = sink.writer();
  const EventCatalog catalog = writer.catalog();
  const std::vector<bool> loaded = writer.loaded_events();
  const EventTotals totals = writer.totals();
  run.formats(catalog, loaded);
  run.event_counts(catalog, loaded, totals);
  run.tasks(writer.tasks(), writer.task_names());
  for (const auto& [cpu, gaps] : sink.gaps()) run.lost_events(cpu, 0, gaps);
  run.meta("lost_gaps_count", static_cast<std::int64_t>(sink.gaps_count()));
  run.meta("lost_events_count", static_cast<std::int64_t>(sink.lost_known()));
  if (facts.has_time) {
    run.meta("first_ts", facts.first_ts);
    run.meta("last_ts", facts.last_ts);
  }
  run.meta("partial", std::int64_t{sink.is_part() ? 1 : 0});
  run.meta("damaged", std::int64_t{0});
  run.meta("damage", "");
}

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  return total;
}

void warn(const Reporter& reporter, const InputFile& file, const TextFacts& facts) {
  if (facts.not_understood == 0) return;
  reporter.warning({.slug = "lines-not-understood",
                    .object = file.path(),
                    .text = std::to_string(facts.not_understood) + " of " +
                            std::to_string(facts.lines) + " lines are no record that wbscope knows",
                    .at = "line " + std::to_string(facts.first_not_understood) + ": \"" +
                          facts.not_understood_text + "\"",
                    .have = {},
                    .effect = "they were left out",
                    .fix = {}});
}

}  // namespace

bool is_text(const InputFile& file) {
  std::array<std::byte, 4096> start{};
  const std::size_t got = file.read_some(0, start);
  return looks_like_text(std::span(start).first(got));
}

void ingest_text(const InputFile& file, const IngestOptions& options, const Reporter& reporter) {
  const References references(options.formats.empty()
                                  ? std::string()
                                  : read_text_file(options.formats, kMaxFormatsBytes));
  RunFile output(options.output, options.force);
  Database& db = output.db();
  RunWriter run(db);
  const std::string uname = uname_of(options.source);
  std::future<std::string> hash =
      std::async(std::launch::async, [&file] { return file.hash(); });
  DatabaseSink sink(db, options);
  TextReader reader(references, sink, kernel_release(uname));
  Counters counters;
  read_lines(file, reader, sink, reporter, counters);
  sink.writer().finish();
  counters.merge(sink.writer().counters());

  const EventTotals totals = sink.writer().totals();
  run.source(file, hash.get());
  write_meta(run, reader.facts(), uname);
  write_tables(run, sink, reader.facts());
  run.meta("events_count", static_cast<std::int64_t>(sum(totals.counted)));
  run.meta("loaded_count", static_cast<std::int64_t>(sum(totals.loaded)));
  run.ingest_stats(counters);

  const std::vector<Message> warnings = output.finish(options.source);
  warn(reporter, file, reader.facts());
  for (const auto& warning : warnings) reporter.warning(warning);
  reporter.done(output.path(), sum(totals.counted), sum(totals.loaded), false);
}

}  // namespace wbscope
