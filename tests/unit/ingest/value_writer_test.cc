// SPDX-License-Identifier: Apache-2.0
// ValueWriter: tables that grow with the fields that are seen, typed values,
// and what RunWriter is told of them.
#include "sink/value_writer.h"

#include <gtest/gtest.h>

#include "support.h"

namespace wbscope {
namespace {

using Cell = ValueWriter::Cell;

class ValueWriterTest : public ::testing::Test {
 protected:
  std::uint32_t field(std::uint32_t event, const std::string& name, const std::string& type = "") {
    return writer_.field(event, {.name = name, .type = type});
  }
  // The rows of a query, each "a|b|..." of quote()d values.
  std::string rows(const std::string& sql) { return testing::rows(db_, sql); }

  Database db_{":memory:", "test", Database::Mode::kCreate};
  ValueWriter writer_{db_};
};

TEST_F(ValueWriterTest, EachValueKeepsItsType) {
  const auto event = writer_.event("s", "e");
  const std::string text = "five";
  const std::byte blob[] = {std::byte{1}, std::byte{0xff}};
  const Cell cells[] = {{field(event, "a"), std::int64_t{-5}},
                        {field(event, "b"), 0.5},
                        {field(event, "c"), std::string_view(text)},
                        {field(event, "d"), std::span<const std::byte>(blob)},
                        {field(event, "e"), std::monostate{}}};
  writer_.write(event, 10, 1, 42, 0, cells);
  writer_.finish();
  EXPECT_EQ(rows("SELECT ts, cpu, tid, buffer, seq, quote(a), quote(b), quote(c), quote(d),"
                 " quote(e) FROM ev_e"),
            "10|1|42|0|1|-5|0.5|'five'|X'01FF'|NULL");
}

TEST_F(ValueWriterTest, LateFieldsAreNullBefore) {
  const auto event = writer_.event("s", "e");
  for (int i = 0; i < 100; ++i) {
    const Cell one[] = {{field(event, "a"), std::int64_t{i}}};
    writer_.write(event, i, 0, 1, 0, one);
    if (i < 97) continue;
    const Cell two[] = {{field(event, "late"), std::int64_t{7}}};
    writer_.write(event, i, 0, 1, 0, two);
  }
  writer_.finish();
  EXPECT_EQ(rows("SELECT count(*), count(a), sum(a), count(late), max(seq) FROM ev_e"),
            "103|100|4950|3|103");
  EXPECT_EQ(rows("SELECT seq, quote(a), quote(late) FROM ev_e WHERE seq > 100 ORDER BY seq"),
            "101|NULL|7 102|99|NULL 103|NULL|7");
}

TEST_F(ValueWriterTest, TextInAColumnOfTextStaysText) {
  const auto event = writer_.event("s", "e");
  const Cell cells[] = {{field(event, "comm", "char[16]"), std::string_view("007")},
                        {field(event, "free"), std::string_view("007")}};
  writer_.write(event, 1, 0, 1, 0, cells);
  writer_.finish();
  EXPECT_EQ(rows("SELECT quote(comm), quote(free) FROM ev_e"), "'007'|'007'");
}

TEST_F(ValueWriterTest, NamesClash) {
  const auto first = writer_.event("a", "x");
  const auto second = writer_.event("b", "X");
  EXPECT_EQ(writer_.event("a", "x"), first);
  EXPECT_NE(first, second);
  const Cell cells[] = {{field(second, "ts"), std::int64_t{1}}, {field(second, "q"), std::int64_t{2}}};
  writer_.write(second, 5, 0, 1, 0, cells);
  writer_.finish();
  EXPECT_EQ(rows("SELECT ts, field_ts, q FROM ev_b__X"), "5|1|2");
}

TEST_F(ValueWriterTest, TellsWhatWasCountedAndLoaded) {
  const auto loaded = writer_.event("s", "loaded");
  const auto counted = writer_.event("", "counted");
  writer_.write(loaded, 5, 0, 42, 0, {});
  writer_.count(counted, 3, 42);
  writer_.count(counted, 9, 43);
  writer_.count(counted, 10, EventLead::kNoTid);  // of nobody
  writer_.name_task(42, "dd");
  writer_.name_task(42, "cat");
  writer_.finish();
  EXPECT_EQ(writer_.totals().counted, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(writer_.totals().loaded, (std::vector<std::uint64_t>{1, 0}));
  EXPECT_EQ(writer_.loaded_events(), (std::vector<bool>{true, false}));
  const auto tasks = writer_.tasks();
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks.at(42).first_ts, 3);
  EXPECT_EQ(tasks.at(42).last_ts, 5);
  EXPECT_EQ(tasks.at(42).events, 2u);
  EXPECT_EQ(writer_.task_names().at(42), "cat");

  RunWriter run(db_);
  run.formats(writer_.catalog(), writer_.loaded_events());
  run.event_counts(writer_.catalog(), writer_.loaded_events(), writer_.totals());
  EXPECT_EQ(rows("SELECT event, id, count, loaded_count, table_name FROM event_counts ORDER BY event"),
            "counted|NULL|3|0|NULL s:loaded|NULL|1|1|ev_loaded");
  EXPECT_EQ(rows("SELECT event, id, status FROM event_format ORDER BY event"),
            "counted|NULL|text s:loaded|NULL|text");
}

TEST_F(ValueWriterTest, NamesHaveACap) {
  const auto event = writer_.event("s", "e");
  std::uint32_t last = 0;
  for (int i = 0; i < 512; ++i) last = field(event, "f" + std::to_string(i));
  EXPECT_EQ(last, 511u);
  last = field(event, "f512");
  EXPECT_EQ(last, ValueWriter::kNone);
  const Cell cells[] = {{last, std::int64_t{1}}};
  writer_.write(event, 1, 0, 1, 0, cells);
  for (int i = 0; i < 9000; ++i) last = writer_.event("s", "e" + std::to_string(i));
  EXPECT_EQ(last, ValueWriter::kNone);
  writer_.write(last, 1, 0, 1, 0, {});
  writer_.finish();
  EXPECT_EQ(rows("SELECT count(*) FROM ev_e"), "1");
  EXPECT_GT(writer_.counters().get(Counter::kNamesOverCap), 0u);
}

// Each takes SQLite the longer, the more tables there are.
TEST_F(ValueWriterTest, ColumnsThatComeLateHaveACap) {
  const auto early = writer_.event("s", "early");
  for (int i = 0; i < 40; ++i) writer_.write(early, i, 0, 1, 0, {});  // makes the table
  std::uint32_t event = early;
  for (int i = 0; event != ValueWriter::kNone; ++i) {
    event = writer_.event("s", "e" + std::to_string(i));
  }
  EXPECT_NE(field(early, "late"), ValueWriter::kNone);
  std::uint32_t last = 0;
  for (int i = 0; i < 200; ++i) last = field(early, "late" + std::to_string(i));
  EXPECT_EQ(last, ValueWriter::kNone);
  const auto other = writer_.event("s", "e1");
  for (int i = 0; i < 200; ++i) last = field(other, "f" + std::to_string(i));
  EXPECT_NE(last, ValueWriter::kNone);  // has no table yet
}

}  // namespace
}  // namespace wbscope
