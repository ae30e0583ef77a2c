// SPDX-License-Identifier: Apache-2.0
// The job "sqlite" for text: lines -> references -> tables.
#include "ingest_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>

#include "bad_stamps.h"
#include "base/byte_reader.h"
#include "base/interrupt.h"
#include "damage.h"
#include "event_choice.h"
#include "run_file.h"
#include "selection.h"
#include "sink/run_writer.h"
#include "text/line_source.h"
#include "text/text_reader.h"
#include "text/text_stamps.h"

namespace wbscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFormatsBytes = 64u << 20;
constexpr std::size_t kMaxUnameBytes = 4096;
constexpr std::size_t kMaxGaps = 1u << 20;
constexpr std::size_t kMaxPending = 1u << 18;
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::uint32_t kLinesBetweenChecks = 4096;
constexpr auto kProgressEvery = std::chrono::milliseconds(200);

// Records into a run database, those of the chosen time and number.
class DatabaseSink final : public TextSink {
 public:
  DatabaseSink(Database& db, const IngestOptions& options)
      : writer_(db, options.plan.previous),
        choice_(options.globs, options.all),
        options_(options),
        room_(options.limit.value_or(UINT64_MAX)) {
    if (!needs_start(options)) range_ = time_range(options, 0);
  }

  bool selects(std::int64_t ts) override {
    if (!range_) range_ = time_range(options_, ts);
    if (cut_ && ts > last_loaded_) is_full_ = true;
    return range_->holds(ts);
  }
  bool wanted(std::string_view system, std::string_view name) override {
    return choice_.has(system, name);
  }
  bool keeps_flags(std::string_view system, std::string_view name) override {
    return options_.plan.flags.contains(std::string(system) + ":" + std::string(name));
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
    if (room_ == 0) {
      cut_ = true;
      count(event, ts, tid);
      return;
    }
    --room_;
    last_loaded_ = std::max(last_loaded_, ts);
    note(ts);
    writer_.write(event, ts, cpu, tid, 0, cells);
  }
  // Behind the last row that --limit lets in, it takes another wanted record to
  // know that records are left out.
  void count(std::uint32_t event, std::int64_t ts, std::int32_t tid) override {
    if (room_ != 0 || ts <= last_loaded_) {
      note(ts);
      writer_.count(event, ts, tid);
    } else if (!cut_) {
      const auto place = std::pair(event, pending_.size() < kMaxPending ? tid : EventLead::kNoTid);
      const auto [at, is_new] = pending_.try_emplace(place, TaskSpan{ts, ts, 0});
      at->second.first_ts = std::min(at->second.first_ts, ts);
      at->second.last_ts = std::max(at->second.last_ts, ts);
      ++at->second.events;
    }
  }
  void name_task(std::int32_t tid, std::string_view comm) override {
    writer_.name_task(tid, comm);
  }
  void lost(std::int64_t ts, std::uint32_t cpu, std::optional<std::uint64_t> count) override {
    if (!selects(ts) || gaps_seen_ >= kMaxGaps) return;
    ++gaps_seen_;
    gaps_[cpu].push_back({.ts = ts, .count = count});
  }

  // After the last record.
  void finish() {
    if (cut_) {
      range_->end = after(last_loaded_, 1);
      for (auto& [cpu, gaps] : gaps_) {
        std::erase_if(gaps, [this](const LostGap& gap) { return !range_->holds(gap.ts); });
      }
    } else {
      for (const auto& [place, span] : pending_) {
        note(span.first_ts);
        note(span.last_ts);
        writer_.count(place.first, place.second, span);
      }
    }
    gaps_seen_ = 0;
    for (const auto& [cpu, gaps] : gaps_) {
      gaps_seen_ += gaps.size();
      for (const LostGap& gap : gaps) lost_known_ += gap.count.value_or(0);
    }
    writer_.finish();
  }

  [[nodiscard]] ValueWriter& writer() noexcept { return writer_; }
  // More records than --limit: the rest need not be read.
  [[nodiscard]] bool is_full() const noexcept { return is_full_; }
  [[nodiscard]] TimeRange range() const noexcept { return range_.value_or(TimeRange{}); }
  [[nodiscard]] std::optional<std::uint64_t> reached_limit() const noexcept {
    return cut_ ? options_.limit : std::nullopt;
  }
  // Of the selected records.
  [[nodiscard]] std::int64_t first_ts() const noexcept { return first_ts_; }
  [[nodiscard]] std::int64_t last_ts() const noexcept { return last_ts_; }
  [[nodiscard]] const std::map<std::uint32_t, std::vector<LostGap>>& gaps() const noexcept {
    return gaps_;
  }
  [[nodiscard]] std::uint64_t gaps_count() const noexcept { return gaps_seen_; }
  [[nodiscard]] std::uint64_t lost_known() const noexcept { return lost_known_; }

 private:
  void note(std::int64_t ts) {
    first_ts_ = std::min(first_ts_, ts);
    last_ts_ = std::max(last_ts_, ts);
  }

  ValueWriter writer_;
  EventChoice choice_;
  const IngestOptions& options_;
  std::optional<TimeRange> range_;
  std::uint64_t room_;
  bool cut_ = false;  // a wanted record found no room
  bool is_full_ = false;
  std::int64_t first_ts_ = INT64_MAX;
  std::int64_t last_ts_ = INT64_MIN;
  std::int64_t last_loaded_ = INT64_MIN;
  std::map<std::pair<std::uint32_t, std::int32_t>, TaskSpan> pending_;  // by event and task
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

// What a text without records is.
std::string describe_text(const TextFacts& facts, const References& references) {
  if (facts.style == TextStyle::kLog) {
    std::string kinds;
    for (const auto& name : references.names_of("printk")) {
      kinds += (kinds.empty() ? "\"" : ", \"") + name + ":\"";
    }
    return "found a kernel log without " + (kinds.empty() ? "known" : kinds) + " lines";
  }
  if (facts.has_heading && facts.not_understood == 0) {
    return "found a trace with a heading and no record";
  }
  const std::string lines = std::to_string(facts.not_understood) + " of " +
                            std::to_string(facts.lines) + " lines are no record";
  if (facts.has_heading) return "found a trace with a heading and no record: " + lines;
  return "found a text in which " + lines + " of a trace";
}

[[noreturn]] void throw_no_trace(const InputFile& file, const TextFacts& facts,
                                 const References& references) {
  Message message{.slug = "not-a-trace",
                  .object = file.path(),
                  .text = describe_text(facts, references),
                  .at = {},
                  .have = {},
                  .effect = "nothing was written",
                  .fix = "give a trace.dat, or text of the kernel's file trace, trace-cmd report,"
                         " perf script or a kernel log with lines that wbscope knows"};
  if (facts.has_heading) {
    message.slug = "empty-trace";
    message.fix = "record again: were events switched on, and did tracing run?";
  }
  if (facts.first_not_understood != 0) {
    message.at = "line " + std::to_string(facts.first_not_understood) + ": \"" +
                 facts.not_understood_text + "\"";
  }
  throw Error(Exit::kInput, message);
}

void refuse_wide_text(const InputFile& file) {
  std::array<std::byte, 4096> start{};
  const std::string encoding(
      wide_encoding(std::span(start).first(file.read_some(0, start))));
  if (encoding.empty()) return;
  throw Error(Exit::kInput,
              {.slug = "not-utf8",
               .object = file.path(),
               .text = "found " + encoding + " text, wanted UTF-8",
               .at = {},
               .have = {},
               .effect = "nothing was written",
               .fix = "iconv -f " + encoding + " -t UTF-8 " + file.path() + " > trace.txt"});
}

// What is missing from the text, or was put into it, after it was printed.
std::vector<Message> find_damage(const LineSource& lines, const TextFacts& facts) {
  std::vector<Message> damage;
  const auto add = [&damage](std::uint64_t count, const char* what, std::string at) {
    if (count == 0) return;
    damage.push_back({.slug = "damaged-trace",
                      .object = {},
                      .text = "found " + std::to_string(count) + what,
                      .at = std::move(at),
                      .have = {},
                      .effect = {},
                      .fix = {}});
  };
  const auto line = [](std::uint64_t number) { return "line " + std::to_string(number); };
  add(lines.nul_bytes(), " NUL bytes, as a crash leaves them",
      line(lines.first_nul_line()));
  add(facts.noise, " lines that are no text", "first: " + line(facts.first_noise));
  add(lines.cut_lines(), " lines longer than 64 KiB; their rest was left out",
      "first: " + line(lines.first_cut_line()));
  if (lines.is_unended() && (facts.is_last_misread || facts.is_last_cut)) {
    add(1, " record that ends in the middle", line(facts.lines));
  }
  return damage;
}

// Every line of the file through the reader, until it has enough. Returns the
// damage that was met.
std::vector<Message> read_lines(const InputFile& file, const References& references,
                                TextReader& reader, DatabaseSink& sink, const Reporter& reporter,
                                Counters& counters) {
  std::array<std::byte, kUtf8Mark.size()> start{};
  const std::size_t got = file.read_some(0, start);
  const bool has_mark = as_text(std::span(start).first(got)) == kUtf8Mark;
  std::uint64_t offset = has_mark ? kUtf8Mark.size() : 0;
  LineSource lines([&file, &offset](std::span<std::byte> out) {
    const std::size_t step = file.read_some(offset, out);
    offset += step;
    return step;
  });
  auto last_report = std::chrono::steady_clock::now();
  std::uint32_t until_check = kLinesBetweenChecks;
  bool was_sampling = true;
  for (std::string_view line; !sink.is_full() && lines.next(line);) {
    reader.line(line, lines.is_unended());
    if (was_sampling && !reader.is_sampling()) {
      was_sampling = false;
      if (!reader.is_trace()) throw_no_trace(file, reader.facts(), references);
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
  sink.finish();
  const TextFacts& facts = reader.facts();
  if (!reader.is_trace() || facts.records == 0) throw_no_trace(file, facts, references);
  counters.add(Counter::kTextLines, facts.lines);
  counters.add(Counter::kTextGeneric, facts.generic);
  counters.add(Counter::kTextContinuations, facts.continuations);
  counters.add(Counter::kTextOther, facts.other);
  counters.add(Counter::kTextNotUnderstood, facts.not_understood);
  counters.add(Counter::kTextCut, lines.cut_lines());
  counters.add(Counter::kTextOverwritten, facts.overwritten);
  counters.add(Counter::kTimeBackwards, facts.time_backwards);
  counters.add(Counter::kLostGaps, sink.gaps_count());
  counters.merge(sink.writer().counters());
  std::vector<Message> damage = find_damage(lines, facts);
  add_change(damage, file);
  return damage;
}

// The kernel of a run folder, from its file uname: text names none.
std::string uname_of(const std::string& source) {
  std::error_code ignored;
  const fs::path path = fs::path(source) / "uname";
  if (!fs::is_directory(source, ignored) || !fs::is_regular_file(path, ignored)) return {};
  try {
    const std::string text = read_text_file(path.string(), kMaxUnameBytes, source);
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

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  return total;
}

void write_tables(Database& db, RunWriter& run, DatabaseSink& sink, const TextFacts& facts,
                  const EventIndexes& indexes) {
  const ValueWriter& writer = sink.writer();
  const EventCatalog catalog = writer.catalog();
  const std::vector<bool> loaded = writer.loaded_events();
  const EventTotals totals = writer.totals();
  run.formats(catalog, loaded);
  indexes.create(db, catalog, loaded);
  run.event_counts(catalog, loaded, totals);
  run.tasks(writer.tasks(), writer.task_names());
  for (const auto& [cpu, gaps] : sink.gaps()) run.lost_events(cpu, 0, gaps);
  run.meta("lost_gaps_count", static_cast<std::int64_t>(sink.gaps_count()));
  run.meta("lost_events_count", static_cast<std::int64_t>(sink.lost_known()));
  if (facts.elided > 0) run.meta("elided_lines_count", static_cast<std::int64_t>(facts.elided));
  run.meta("events_count", static_cast<std::int64_t>(writer.counted()));
  run.meta("loaded_count", static_cast<std::int64_t>(sum(totals.loaded)));
  if (facts.has_time && sink.first_ts() <= sink.last_ts()) {
    run.meta("first_ts", sink.first_ts());
    run.meta("last_ts", sink.last_ts());
  }
  write_selection(run, sink.range(), sink.reached_limit());
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

namespace {

// Reads the text into the output. Where that shows stamps that plan does not
// know to be wrong, the output is thrown away, and what is wrong is returned.
StampPlan ingest(const InputFile& file, const IngestOptions& options, const StampPlan& plan,
                 std::shared_future<std::string>& hash, const Reporter& reporter) {
  const References references(options.formats.empty()
                                  ? std::string()
                                  : read_text_file(options.formats, kMaxFormatsBytes));
  RunFile output(options.output, options.force, file, options.no_unpack_limit);
  Database& db = output.db();
  RunWriter run(db);
  const std::string uname = uname_of(options.source);
  if (!hash.valid()) hash = std::async(std::launch::async, [&file] { return file.hash(); });
  DatabaseSink sink(db, options);
  TextStamps stamps(plan);
  TextReader reader(references, sink, kernel_release(uname), &stamps);
  Counters counters;
  std::vector<Message> damage = read_lines(file, references, reader, sink, reporter, counters);
  if (plan.is_empty()) {
    StampPlan found = stamps.judge(reader.facts().overwritten > 0);
    if (!found.is_empty()) return found;
  } else if (stamps.bad_records() > 0) {
    damage.push_back(bad_stamps_message(plan, stamps.bad_records()));
    counters.add(Counter::kBadStamps, stamps.bad_records());
    run.bad_stamps(plan.bad);
  }

  const std::uint64_t counted = sink.writer().counted();
  run.source(file, hash.get());
  write_meta(run, reader.facts(), uname);
  write_tables(db, run, sink, reader.facts(), options.plan.indexes);
  write_damage(run, damage);
  run.ingest_stats(counters);

  const std::vector<Message> warnings = output.finish(options.source);
  warn_of_damage(reporter, file, damage, counted);
  warn(reporter, file, reader.facts());
  for (const auto& warning : warnings) reporter.warning(warning);
  reporter.done(output.path(), counted, sum(sink.writer().totals().loaded), !damage.empty());
  return {};
}

}  // namespace

void ingest_text(const InputFile& file, const IngestOptions& options, const Reporter& reporter) {
  refuse_wide_text(file);
  std::shared_future<std::string> hash;
  const StampPlan plan = ingest(file, options, {}, hash, reporter);
  if (!plan.is_empty()) (void)ingest(file, options, plan, hash, reporter);
}

}  // namespace wbscope
