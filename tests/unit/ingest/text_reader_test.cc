// SPDX-License-Identifier: Apache-2.0
// Text without a database: print formats turned round, choice of references,
// heads of lines, lines of a source.
#include "text/text_reader.h"

#include <gtest/gtest.h>

#include <map>

#include "support.h"
#include "text/line_source.h"

namespace wbscope {
namespace {

// Writes records down as "event field=value ...".
class NotingSink final : public TextSink {
 public:
  bool selects(std::int64_t) override { return true; }
  bool wanted(std::string_view, std::string_view name) override { return name != "unwanted"; }
  bool keeps_flags(std::string_view, std::string_view name) override { return name == "sched_waking"; }
  std::uint32_t event(std::string_view system, std::string_view name) override {
    events_.push_back(std::string(system) + ":" + std::string(name));
    fields_.emplace_back();
    return static_cast<std::uint32_t>(events_.size() - 1);
  }
  std::uint32_t field(std::uint32_t event, const ValueField& field) override {
    fields_[event].push_back(field.name);
    return static_cast<std::uint32_t>(fields_[event].size() - 1);
  }
  void describe(std::uint32_t, std::string, std::vector<EnumLabel>) override {}
  void write(std::uint32_t event, std::int64_t ts, std::uint32_t, std::int32_t tid,
             std::span<const ValueWriter::Cell> cells) override {
    std::string line = std::to_string(ts) + " " + std::to_string(tid) + " " + events_[event];
    for (const auto& [field, value] : cells) {
      line += " " + fields_[event][field] + "=";
      if (const auto* number = std::get_if<std::int64_t>(&value)) line += std::to_string(*number);
      if (const auto* text = std::get_if<std::string_view>(&value)) line += *text;
    }
    records.push_back(line);
  }
  void count(std::uint32_t event, std::int64_t, std::int32_t) override { ++counted[events_[event]]; }
  void name_task(std::int32_t tid, std::string_view comm) override { names[tid] = comm; }
  void lost(std::int64_t ts, std::uint32_t cpu, std::optional<std::uint64_t> count) override {
    gaps.push_back(std::to_string(ts) + " " + std::to_string(cpu) + " " +
                   (count ? std::to_string(*count) : "?"));
  }

  std::vector<std::string> records;
  std::vector<std::string> gaps;
  std::map<std::string, int> counted;
  std::map<std::int32_t, std::string> names;

 private:
  std::vector<std::string> events_;
  std::vector<std::vector<std::string>> fields_;
};

std::string format_of(std::string_view name, std::string_view fields, std::string_view print) {
  return "name: " + std::string(name) +
         "\nID: 7\nformat:\n"
         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" +
         std::string(fields) + "\nprint fmt: " + std::string(print) + "\n";
}

constexpr std::string_view kDevAndState =
    "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:int state;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:char name[8];\toffset:16;\tsize:8;\tsigned:0;\n";
constexpr std::string_view kPrint =
    R"("dev %d,%d state=%s%s name %s", ((unsigned int) ((REC->dev) >> 20)), )"
    R"(((unsigned int) ((REC->dev) & ((1U << 20) - 1))), )"
    R"((REC->state & 3) ? __print_flags(REC->state & 3, "|", { 1, "A" }, { 2, "B" }) : "none", )"
    R"(REC->state & 4 ? "+" : "", REC->name)";

std::vector<std::string> read(const std::string& formats, const std::vector<std::string>& lines,
                              NotingSink& sink, std::string_view release = "") {
  const References references(formats);
  TextReader reader(references, sink, release);
  for (const auto& line : lines) reader.line(line);
  reader.finish();
  return sink.records;
}

// Whether the last line is told as cut when nothing comes behind it, not even a newline.
bool is_cut(const std::string& formats, const std::vector<std::string>& before,
            const std::string& last) {
  NotingSink sink;
  const References references(formats);
  TextReader reader(references, sink, "");
  for (const auto& line : before) reader.line(line);
  reader.line(last, true);
  reader.finish();
  return reader.facts().is_last_cut;
}

std::string read_one(const std::string& formats, const std::string& payload) {
  NotingSink sink;
  const auto records = read(formats, {"t-5 [001] 2.5: e: " + payload}, sink);
  return records.size() == 1 ? records[0] : "no record";
}

TEST(TextReader, WakeUpsHaveTheirContextAndBlockedItsCommonName) {
  NotingSink sink;
  const auto records = read(
      "", {"# tracer: nop", "dd-1 [000] d.h2. 1.0: sched_waking: pid=2",
           "dd-1 [000] d.s.. 2.0: sched_waking: pid=2",
           "dd-1 [000] d.H1. 3.0: sched_waking: pid=2",
           "dd-1 [000] d..3. 4.0: sched_waking: pid=2",
           "dd-1 [000] 5.0: sched_waking: pid=2",
           "dd-1 [000] d..3. 6.0: wbscope_12_0123abcd_blocked: pid=2",
           "dd-1 [000] d..3. 7.0: wbscope_other: pid=2"},
      sink);
  const std::vector<std::string> expected = {
      "1000000000 1 :sched_waking pid=2 common_flags=8",
      "2000000000 1 :sched_waking pid=2 common_flags=16",
      "3000000000 1 :sched_waking pid=2 common_flags=24",
      "4000000000 1 :sched_waking pid=2 common_flags=0",
      "5000000000 1 :sched_waking pid=2",
      "6000000000 1 wbscope:blocked pid=2",
      "7000000000 1 :wbscope_other pid=2"};
  EXPECT_EQ(records, expected);
}

TEST(TextReader, PrintFormatTurnedRound) {
  const std::string formats =
      "# kernel 6.1\n# system s\n" + format_of("e", kDevAndState, kPrint);
  const std::string front = "2500000000 5 s:e ";
  EXPECT_EQ(read_one(formats, "dev 8,17 state=A|B+ name x y"),
            front + "dev=8388625 state=7 name=x y");
  EXPECT_EQ(read_one(formats, "dev 8,0 state=none name "), front + "dev=8388608 state=0 name=");
  EXPECT_EQ(read_one(formats, "dev 8,0 state=0x8 name z"), front + "dev=8388608 state=8 name=z");
  // Fits no print format: names of the record's fields, as raw output has them.
  EXPECT_EQ(read_one(formats, "dev=3 state=-1 name=q"), front + "dev=3 state=-1 name=q");
}

TEST(TextReader, KernelThatFitsMostEventsDecides) {
  const auto version = [](std::string_view kernel, std::string_view key, int value) {
    const std::string of_key = "\"" + std::string(key) + "=%d\", REC->x";
    const std::string labels = "\"r=%s\", __print_symbolic(REC->x, { " + std::to_string(value) +
                               ", \"word\" })";
    constexpr std::string_view kX = "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n";
    return "# kernel " + std::string(kernel) + "\n# system s\n" + format_of("told", kX, of_key) +
           format_of("shared", kX, labels);
  };
  const std::string formats = version("6.1.5", "old", 1) + version("6.12.9", "new", 2);
  for (const auto& [key, value] : {std::pair("old", "1"), std::pair("new", "2")}) {
    NotingSink sink;
    const auto records =
        read(formats, {"t-5 [0] 1.0: shared: r=word", "t-5 [0] 2.0: told: " + std::string(key) + "=9"},
             sink);
    EXPECT_EQ(records.at(0), "1000000000 5 s:shared x=" + std::string(value));
  }
  NotingSink sink;
  EXPECT_EQ(read(formats, {"t-5 [0] 1.0: shared: r=word"}, sink, "6.1.7-x").at(0),
            "1000000000 5 s:shared x=1");
}

TEST(TextReader, ReadsEveryReferenceOfAKernel) {
  for (const char* event : {"writeback_start", "writeback_queue_io", "wbc_writepage"}) {
    const auto print = compile_print_template(
        "writeback", testing::kernel_format("6.18.44-x86_64", "writeback", event));
    ASSERT_TRUE(print) << event;
    EXPECT_FALSE(print->pieces.empty()) << event;
    EXPECT_GE(print->invertible + 1, print->fields.size()) << event;
  }
}

TEST(TextReader, UnwantedEventsAreCounted) {
  NotingSink sink;
  EXPECT_TRUE(read("", {"dd-1 [000] 1.0: unwanted: a=1", "<...>-2 [000] 2.0: unwanted: a=2"}, sink)
                  .empty());
  EXPECT_EQ(sink.counted.at(":unwanted"), 2);
  EXPECT_EQ(sink.names, (std::map<std::int32_t, std::string>{{1, "dd"}}));
}

TEST(TextReader, LostEventsAreBeforeTheNextRecordOfTheirCpu) {
  NotingSink sink;
  (void)read("", {"d-1 [001] 1.0: e: a=1", "CPU:1 [LOST 3 EVENTS]", "CPU:0 [EVENTS DROPPED]",
                  "d-1 [001] 2.0: e: a=1"},
             sink);
  EXPECT_EQ(sink.gaps, (std::vector<std::string>{"2000000000 1 3", "2000000000 0 ?"}));
}

TEST(TextReader, MarksOfLinesLeftOutAreCounted) {
  const auto elided = [](const std::string& mark) {
    NotingSink sink;
    const References references("");
    TextReader reader(references, sink, "");
    for (const std::string& line : {std::string("d-1 [001] 1.0: e: a=1"), mark}) reader.line(line);
    reader.finish();
    return std::pair(reader.facts().elided, reader.facts().not_understood);
  };
  for (const char* mark : {"...", "  ....", "[...]", "(...)", "> ...", "<snip>", "--- snip ---",
                           "[..]", "[ \u2026 ]"}) {
    EXPECT_EQ(elided(mark), (std::pair<std::uint64_t, std::uint64_t>(1, 0))) << mark;
  }
  for (const char* text : {".", "and so on ...", "snippet", "---", "d-1 ... e"}) {
    EXPECT_EQ(elided(text), (std::pair<std::uint64_t, std::uint64_t>(0, 1))) << text;
  }
}

TEST(LineHead, NumbersThatDoNotFitAreNoHead) {
  EXPECT_FALSE(parse_line_head("d-99999999999 [000] 1.0: e: a"));
  EXPECT_FALSE(parse_line_head("d-1 [99999999999] 1.0: e: a"));
  EXPECT_FALSE(parse_line_head("d-1 [000] 99999999999.0: e: a"));
  EXPECT_FALSE(parse_line_head("d-1 [000] 1.0123456789: e: a"));
  EXPECT_FALSE(parse_line_head("d-1 [000] 1.0: "));
  EXPECT_TRUE(parse_line_head("d-1 [000] 1.: ") == std::nullopt);
  EXPECT_TRUE(parse_line_head("d-1 [000] 9223372035.999999999: e: a"));
}

TEST(LineHead, LongWordsAreNoNames) {
  const std::string word(kMaxTextName, 'x');
  EXPECT_EQ(parse_line_head("d-1 [000] 1.0: " + word + ": a=1")->event, word);
  EXPECT_EQ(parse_line_head("d-1 [000] 1.0: " + word + "x: a=1")->event, "");
  EXPECT_EQ(read_one("", word + "=1"), "2500000000 5 :e " + word + "=1");
  EXPECT_EQ(read_one("", word + "x=1"), "2500000000 5 :e payload=" + word + "x=1");
}

TEST(TextReader, LastLineWithoutNewline) {
  const std::string head = "t-5 [001] 2.5: ";
  const auto two = "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
                   "\tfield:int bc;\toffset:12;\tsize:4;\tsigned:1;\n";
  // The older kernel prints the first half of what the newer one does.
  const std::string formats = "# kernel 2\n# system s\n" +
                              format_of("e", two, R"("a=%d bc=%d", REC->a, REC->bc)") +
                              "# kernel 1\n# system s\n" +
                              format_of("e", two, R"("a=%d", REC->a)");
  const std::vector<std::string> before(3, head + "e: a=1 bc=2");
  EXPECT_FALSE(is_cut(formats, before, head + "e: a=1 bc=2"));
  EXPECT_FALSE(is_cut(formats, {}, head + "e: a=1 bc=2"));
  EXPECT_FALSE(is_cut(formats, {}, head + "e: a=1"));
  EXPECT_TRUE(is_cut(formats, before, head + "e: a=1"));
  for (const char* end : {"e: a=1 bc=", "e: a=1 b", "e: a=", "e: a", "e:"}) {
    EXPECT_TRUE(is_cut(formats, before, head + end)) << end;
    EXPECT_TRUE(is_cut(formats, {}, head + end)) << end;
  }
  // Of an event without a reference the other lines tell.
  const std::vector<std::string> unknown(3, head + "u: x=1 yy=2(3)");
  EXPECT_FALSE(is_cut("", unknown, head + "u: x=1 yy=5(6)"));
  EXPECT_FALSE(is_cut("", {}, head + "u: x=1"));
  for (const char* end : {"u: x=1 yy=5(", "u: x=1 yy=5", "u: x=1 yy=", "u: x=1 y", "u:"}) {
    EXPECT_TRUE(is_cut("", unknown, head + end)) << end;
  }
  EXPECT_FALSE(is_cut("", before, head + "tracing_mark_write: any te"));
}


std::vector<std::string> lines_of(std::string_view text, std::size_t chunk, std::uint64_t& cut) {
  LineSource source([&text, chunk](std::span<std::byte> out) {
    const std::size_t n = std::min({out.size(), text.size(), chunk});
    std::copy_n(std::as_bytes(std::span(text)).begin(), n, out.begin());
    text.remove_prefix(n);
    return n;
  });
  std::vector<std::string> lines;
  for (std::string_view line; source.next(line);) lines.emplace_back(line);
  cut = source.cut_lines();
  return lines;
}

TEST(LineSource, LinesOfAnyChunk) {
  const std::string text("a\n\nb\0c\nlast", 11);
  for (const std::size_t chunk : {1u, 2u, 3u, 100u}) {
    std::uint64_t cut = 0;
    EXPECT_EQ(lines_of(text, chunk, cut), (std::vector<std::string>{"a", "", "bc", "last"}));
    EXPECT_EQ(cut, 0u);
  }
}

TEST(LineSource, LastLineThatIsLongerThanWhatIsBeforeIt) {
  const std::string text = "a\nwithout its newline";
  std::uint64_t cut = 0;
  EXPECT_EQ(lines_of(text, 100, cut), (std::vector<std::string>{"a", "without its newline"}));
}

TEST(LineSource, LongLinesAreCut) {
  const std::string text = std::string(5u << 20, 'x') + "\nshort\n" + std::string(70'000, 'y');
  for (const std::size_t chunk : {4096u, 1u << 22}) {
    std::uint64_t cut = 0;
    const auto lines = lines_of(text, chunk, cut);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].size(), LineSource::kMaxLine);
    EXPECT_EQ(lines[1], "short");
    EXPECT_EQ(lines[2].size(), LineSource::kMaxLine);
    EXPECT_EQ(cut, 2u);
  }
}

TEST(LineSource, BinaryFilesAreNoText) {
  const auto is_text = [](std::string_view start) {
    return looks_like_text(std::as_bytes(std::span(start)));
  };
  EXPECT_TRUE(is_text("# tracer: nop\n"));
  EXPECT_TRUE(is_text(std::string(4000, '\0') + "dd-1 [000] 1.0: e: a=1\n"));
  EXPECT_FALSE(is_text(""));
  EXPECT_FALSE(is_text(std::string(4096, '\0')));
  EXPECT_FALSE(is_text("\x17\x08\x44tracing"));
  EXPECT_FALSE(is_text("\x1f\x8b\x08 gzip"));
}

}  // namespace
}  // namespace wbscope
