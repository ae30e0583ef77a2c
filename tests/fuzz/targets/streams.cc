// SPDX-License-Identifier: Apache-2.0
// Trace text and record streams, into tables of a database in memory.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/error.h"
#include "records/record_stream.h"
#include "sink/database.h"
#include "sink/run_writer.h"
#include "sink/value_writer.h"
#include "targets.h"
#include "text/line_source.h"
#include "text/text_reader.h"

namespace wbscope::fuzz {
namespace {

// A database that forgets again what one input wrote.
class Tables {
 public:
  Tables() : db_(":memory:", "fuzz", Database::Mode::kCreate), run_(db_) {}
  template <typename Fill>
  void with(Fill&& fill) {
    db_.exec("BEGIN");
    fill(db_, run_);
    db_.exec("ROLLBACK");
  }

 private:
  Database db_;
  RunWriter run_;
};

// Gives an input away in pieces of at most `most` bytes.
class Pieces {
 public:
  Pieces(Bytes input, std::size_t most) : rest_(input), most_(most) {}
  std::size_t operator()(std::span<std::byte> out) {
    const std::size_t count = std::min({out.size(), rest_.size(), most_});
    std::copy_n(rest_.begin(), count, out.begin());
    rest_ = rest_.subspan(count);
    return count;
  }

 private:
  Bytes rest_;
  std::size_t most_;
};

// Each way in which a print format prints a field, in two kernels that do not
// agree, and a line of a kernel log.
std::string formats() {
  const std::string common =
      "\nID: 1\nformat:\n"
      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
      "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
      "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
      "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
      "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n"
      "\tfield:s16 b;\toffset:10;\tsize:2;\tsigned:1;\n"
      "\tfield:dev_t dev;\toffset:12;\tsize:4;\tsigned:0;\n"
      "\tfield:unsigned long c;\toffset:16;\tsize:8;\tsigned:0;\n"
      "\tfield:char name[16];\toffset:24;\tsize:16;\tsigned:0;\n"
      "\tfield:__data_loc char[] path;\toffset:40;\tsize:4;\tsigned:0;\n"
      "\tfield:bool on;\toffset:44;\tsize:1;\tsigned:0;\n\nprint fmt: ";
  const auto format = [&](const char* name, const char* print) {
    return std::string("name: ") + name + common + print + "\n";
  };
  return "# kernel 1.0\n# system fuzz\n" +
         format("numbers", "\"a=%u b=%d c=0x%lx\", REC->a, REC->b, REC->c") +
         format("texts", "\"%s: %s dev=%d:%d\", REC->name, __get_str(path), REC->dev >> 20,"
                         " REC->dev & ((1 << 20) - 1)") +
         format("words", "\"r=%s f=%s%s\", __print_symbolic(REC->b, { 0, \"x\" }, { 1, \"xy\" }),"
                         " REC->c ? __print_flags(REC->c, \"|\", { 1, \"A\" }, { 2, \"B\" },"
                         " { 4, \"AB\" }) : \"none\", REC->on ? \"+\" : \"\"") +
         "# kernel 2.0\n# system fuzz\n" +
         format("numbers", "\"a=%u b=%d c=%lu\", REC->a, REC->b, REC->c") +
         format("words", "\"%s%s %s\", __print_flags(REC->c, \"\", { 1, \"A\" }, { 2, \"B\" }),"
                         " REC->name, __print_symbolic(REC->b, { 5, \"x\" }, { UNKNOWN, \"u\" })") +
         "# text fuzz\n# system other\n" +
         format("texts", "\"%s %s==> %s (%o%%)\", REC->name, REC->a & 1 ? \"odd \" : \"\","
                         " __get_str(path), REC->b") +
         "# system printk\n" + format("log", "\"%s a=%u(%d)\", REC->name, REC->a, REC->b");
}

// Loads all events but those whose name starts with "skip".
class TablesSink final : public TextSink {
 public:
  explicit TablesSink(Database& db) : writer_(db) {}

  bool selects(std::int64_t) override { return true; }
  bool wanted(std::string_view, std::string_view name) override {
    return !name.starts_with("skip");
  }
  bool keeps_flags(std::string_view, std::string_view name) override {
    return name.starts_with("f");
  }
  std::uint32_t event(std::string_view system, std::string_view name) override {
    return writer_.event(system, name);
  }
  std::uint32_t field(std::uint32_t event, const ValueField& field) override {
    const std::uint32_t made = writer_.field(event, field);
    if (made != ValueWriter::kNone) fields_[event] = std::max(fields_[event], made + 1);
    return made;
  }
  void describe(std::uint32_t event, std::string format, std::vector<EnumLabel> labels) override {
    writer_.describe(event, std::move(format), std::move(labels));
  }
  void write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
             std::span<const ValueWriter::Cell> cells) override {
    for (const auto& [field, value] : cells) {
      require(field == ValueWriter::kNone || field < fields_[event]);
    }
    if (event != ValueWriter::kNone) ++records_;
    writer_.write(event, ts, cpu, tid, 0, cells);
  }
  void count(std::uint32_t event, std::int64_t ts, std::int32_t tid) override {
    if (event != ValueWriter::kNone) ++records_;
    writer_.count(event, ts, tid);
  }
  void name_task(std::int32_t tid, std::string_view comm) override {
    writer_.name_task(tid, comm);
  }
  void lost(std::int64_t, std::uint32_t, std::optional<std::uint64_t>) override {}

  [[nodiscard]] ValueWriter& writer() noexcept { return writer_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  ValueWriter writer_;
  std::map<std::uint32_t, std::uint32_t> fields_;  // declared, by event
  std::uint64_t records_ = 0;
};

void write_tables(RunWriter& run, const ValueWriter& writer, std::uint64_t records) {
  const EventCatalog catalog = writer.catalog();
  const EventTotals totals = writer.totals();
  std::uint64_t counted = 0;
  for (const std::uint64_t count : totals.counted) counted += count;
  require(counted == records);
  run.formats(catalog, writer.loaded_events());
  run.event_counts(catalog, writer.loaded_events(), totals);
  run.tasks(writer.tasks(), writer.task_names());
  run.ingest_stats(writer.counters());
}

}  // namespace

// Input: a byte of choices, then trace text.
void ftrace_text(Bytes input) {
  static Tables tables;
  static const References with(formats());
  static const References without;
  const std::uint8_t choices = take_byte(input);
  (void)looks_like_text(input);
  tables.with([&](Database& db, RunWriter& run) {
    TablesSink sink(db);
    TextReader reader((choices & 1) != 0 ? with : without, sink,
                      (choices & 2) != 0 ? "2.0.1-fuzz" : "");
    const std::size_t most = (choices & 4) != 0 ? choices : input.size() + 1;
    LineSource lines(Pieces(input, most));
    std::uint64_t given = 0;
    for (std::string_view line; lines.next(line); ++given) {
      require(line.size() <= LineSource::kMaxLine);
      reader.line(line);
    }
    reader.finish();
    const TextFacts& facts = reader.facts();
    require(lines.consumed() == input.size());
    require(facts.lines == given);
    require(facts.records + facts.continuations + facts.other + facts.not_understood <= given);
    require(facts.generic <= facts.records && sink.records() <= facts.records);
    require((facts.not_understood == 0) == (facts.first_not_understood == 0));
    sink.writer().finish();
    write_tables(run, sink.writer(), sink.records());
  });
}

// Input: a record stream.
void records(Bytes input) {
  static Tables tables;
  tables.with([&](Database& db, RunWriter& run) {
    RecordLoader loader(db, run);
    Pieces pieces(input, input.size());
    std::uint64_t frames = 0;
    try {
      loader.load(pieces, [&frames] { ++frames; });
      loader.finish();
    } catch (const ParseError& error) {
      require(error.exit_code() == Exit::kInput);
      require(!error.message().slug.empty() && !error.message().text.empty());
    }
    require(frames <= input.size());
  });
}

}  // namespace wbscope::fuzz
