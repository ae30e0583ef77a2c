// SPDX-License-Identifier: Apache-2.0
// prev_seq and indexes of event tables: which row is linked to which, and what
// happens where a column is not there.
#include <gtest/gtest.h>

#include <array>

#include "sink/event_index.h"
#include "sink/previous_row.h"
#include "sink/value_writer.h"

namespace wbscope {
namespace {

EventLead lead(std::int64_t seq, std::int32_t tid, std::uint32_t buffer = 0) {
  return {.seq = seq, .ts = 10 * seq, .cpu = 0, .tid = tid, .buffer = buffer};
}

// seq of the row before it.
std::int64_t before(PreviousRow& row, EventLead lead) {
  row.link(lead);
  return lead.prev_seq;
}

TEST(PreviousRow, OfTheSameTaskAndBuffer) {
  PreviousRow row(PreviousOf::kTask);
  EXPECT_EQ(before(row, lead(1, 11)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(2, 12)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(3, 11)), 1);
  EXPECT_EQ(before(row, lead(4, 11, 1)), EventLead::kNoSeq);  // of a trace instance
  EXPECT_EQ(before(row, lead(5, 11)), 3);
  EXPECT_EQ(before(row, lead(6, 11, 1)), 4);
  EXPECT_EQ(before(row, lead(7, EventLead::kNoTid)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(8, EventLead::kNoTid)), 7);
}

TEST(PreviousRow, OfAnyTask) {
  PreviousRow row(PreviousOf::kAny);
  EXPECT_EQ(before(row, lead(1, 11)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(2, 12)), 1);
  EXPECT_EQ(before(row, lead(3, 12, 1)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(4, 11)), 2);
}

TEST(PreviousRow, OfAGroup) {
  PreviousRow row(PreviousOf::kTask, false, true);
  EXPECT_FALSE(row.is_counted());
  EXPECT_EQ(before(row, lead(1, 11)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(2, 12)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(3, 11)), 1);
  EXPECT_EQ(before(row, lead(4, 11, 1)), EventLead::kNoSeq);
  EXPECT_EQ(before(row, lead(5, 11)), 3);
}

TEST(PreviousRow, MoreTasksOfAGroupThanAreKept) {
  constexpr std::int32_t kTasks = (1 << 18) + 1;
  PreviousRow row(PreviousOf::kTask, false, true);
  for (std::int32_t tid = 1; tid < kTasks; ++tid) {
    ASSERT_EQ(before(row, lead(tid, tid)), EventLead::kNoSeq);
  }
  // From here on nobody knows what the first row of a task comes after.
  EXPECT_EQ(before(row, lead(kTasks, kTasks)), EventLead::kForgottenSeq);
  EXPECT_EQ(before(row, lead(kTasks + 1, 1)), EventLead::kForgottenSeq);
  EXPECT_EQ(before(row, lead(kTasks + 2, 1)), kTasks + 1);
}

TEST(PreviousRow, MoreTasksThanAreKept) {
  constexpr std::int32_t kTasks = (1 << 20) + 1;
  PreviousRow row(PreviousOf::kTask);
  for (std::int32_t tid = 1; tid <= kTasks; ++tid) {
    ASSERT_EQ(before(row, lead(tid, tid)), EventLead::kNoSeq);
  }
  EXPECT_EQ(before(row, lead(kTasks + 1, kTasks)), kTasks);      // the newest is kept
  EXPECT_EQ(before(row, lead(kTasks + 2, 1)), EventLead::kNoSeq);  // older ones are forgotten
}

std::int64_t repeats(PreviousRow& row, EventLead lead, std::string_view said) {
  row.link(lead, said);
  return lead.repeats;
}

TEST(PreviousRow, RepeatsWhatTheOneBeforeItSaid) {
  PreviousRow any(PreviousOf::kAny);
  EXPECT_EQ(repeats(any, lead(1, 11), "a"), 0);
  EXPECT_EQ(repeats(any, lead(2, 12), "a"), 1);
  EXPECT_EQ(repeats(any, lead(3, 12, 1), "a"), 0);  // of another buffer: the first
  EXPECT_EQ(repeats(any, lead(4, 12), "a"), 2);
  EXPECT_EQ(repeats(any, lead(5, 11), "b"), 0);
  EXPECT_EQ(repeats(any, lead(6, 11), "a"), 0);
  EXPECT_EQ(repeats(any, lead(7, 11, 1), "a"), 1);
  PreviousRow task(PreviousOf::kTask);
  EXPECT_EQ(repeats(task, lead(1, 11), ""), 0);
  EXPECT_EQ(repeats(task, lead(2, 12), ""), 0);
  EXPECT_EQ(repeats(task, lead(3, 11), ""), 1);
  EXPECT_EQ(repeats(task, lead(4, 12), ""), 1);
  EXPECT_EQ(repeats(task, lead(5, 11), ""), 2);
}

// A row that says always the same, and whether it repeats.
bool settled(PreviousRow& row, EventLead lead) { return repeats(row, lead, "a") > 0; }

TEST(PreviousRow, RepeatsOnlyWithTheSameNews) {
  PreviousRow row(PreviousOf::kTask, true);
  row.note_context(11, "t");
  EXPECT_FALSE(settled(row, lead(1, 11)));
  EXPECT_FALSE(settled(row, lead(2, 11)));  // its thread was told nothing
  row.note_context(11, "t");
  EXPECT_FALSE(settled(row, lead(3, 11)));  // nothing was told before the one before
  row.note_context(11, "t");
  EXPECT_TRUE(settled(row, lead(4, 11)));
  row.note_context(11, "t");
  row.note_context(12, "u");
  EXPECT_TRUE(settled(row, lead(5, 11)));  // what another thread was told later is not its own
  row.note_context(11, "u");
  EXPECT_FALSE(settled(row, lead(6, 11)));
  row.note_context(11, "v");
  row.note_context(11, "u");
  EXPECT_FALSE(settled(row, lead(7, 11)));  // back again, which is not kept
  row.note_change();
  row.note_context(11, "u");
  EXPECT_FALSE(settled(row, lead(8, 11)));
  row.note_context(11, "u");
  row.note_change();  // after what the row goes by: the next context
  EXPECT_TRUE(settled(row, lead(9, 11)));
  row.note_context(11, "u");
  EXPECT_FALSE(settled(row, lead(10, 11)));
  row.note_context(11, "u");
  EXPECT_EQ(repeats(row, lead(11, 11), "b"), 0);
  EXPECT_EQ(repeats(row, lead(12, 11), "b"), 0);
  EXPECT_EQ(repeats(row, lead(13, 11), "b"), 0);  // neither was told anything: that is no news
}

TEST(PreviousChoice, GroupsShareARow) {
  PreviousChoice choice;
  choice.add("syscalls:enter", PreviousOf::kTask, "call");
  choice.add("syscalls:exit", PreviousOf::kTask, "call");
  choice.add("writeback:pause", PreviousOf::kTask);
  EXPECT_EQ(choice.group("syscalls", "exit"), "call");
  EXPECT_EQ(choice.group("", "enter"), "call");
  EXPECT_EQ(choice.group("writeback", "pause"), "");
  EXPECT_EQ(choice.group("writeback", "state"), "");
  PreviousRows rows;
  EXPECT_EQ(rows.of(choice, "syscalls", "enter"), rows.of(choice, "syscalls", "exit"));
  EXPECT_NE(rows.of(choice, "writeback", "pause"), rows.of(choice, "writeback", "pause"));
}

TEST(PreviousChoice, News) {
  PreviousChoice choice;
  choice.add_context("writeback:pause", "writeback:state", {"thresh"});
  choice.add_context("writeback:pause", "writeback:rate", {});
  EXPECT_TRUE(choice.has_context("writeback", "pause"));
  EXPECT_TRUE(choice.has_context("", "pause"));
  EXPECT_FALSE(choice.has_context("writeback", "state"));
  EXPECT_TRUE(choice.is_in_context("writeback", "state"));
  EXPECT_FALSE(choice.is_in_context("other", "state"));
  const auto* fields = choice.context_fields("writeback", "state", "writeback", "pause");
  ASSERT_NE(fields, nullptr);
  EXPECT_EQ(*fields, std::vector<std::string>{"thresh"});
  ASSERT_NE(choice.context_fields("", "rate", "", "pause"), nullptr);
  EXPECT_TRUE(choice.context_fields("", "rate", "", "pause")->empty());
  EXPECT_EQ(choice.context_fields("writeback", "pause", "writeback", "state"), nullptr);
}

TEST(PreviousChoice, FieldsOfRepeats) {
  PreviousChoice choice;
  choice.add_repeats("writeback:state", {"nr_dirty", "thresh"});
  EXPECT_EQ(choice.repeats("writeback", "state"),
            (std::vector<std::string>{"nr_dirty", "thresh"}));
  EXPECT_EQ(choice.repeats("", "state").size(), 2u);
  EXPECT_TRUE(choice.repeats("other", "state").empty());
  EXPECT_EQ(choice.of("writeback", "state"), PreviousOf::kNone);
}

TEST(PreviousChoice, ByFullNameOrWithoutSystem) {
  PreviousChoice choice;
  choice.add("writeback:pause", PreviousOf::kTask);
  choice.add("vmscan:write", PreviousOf::kAny);
  EXPECT_EQ(choice.of("writeback", "pause"), PreviousOf::kTask);
  EXPECT_EQ(choice.of("", "pause"), PreviousOf::kTask);
  EXPECT_EQ(choice.of("vmscan", "write"), PreviousOf::kAny);
  EXPECT_EQ(choice.of("other", "pause"), PreviousOf::kNone);
  EXPECT_EQ(choice.of("writeback", "paused"), PreviousOf::kNone);
}

// A database with one event "writeback:pause", links and indexes.
class LinkedTable : public ::testing::Test {
 protected:
  LinkedTable() {
    previous_.add("writeback:pause", PreviousOf::kTask);
    writer_.emplace(db_, previous_);
  }
  void write(std::int32_t tid, std::int64_t value, const std::string& name) {
    const auto event = writer_->event("writeback", "pause");
    const auto field = writer_->field(event, {.name = name, .type = "long"});
    const std::array<ValueWriter::Cell, 1> cells{{{field, Value(value)}}};
    writer_->write(event, 100, 0, tid, 0, cells);
  }
  std::string all(const std::string& sql) {
    std::string text;
    Statement rows(db_, sql);
    while (rows.step()) text += std::string(rows.text(0)) + ";";
    return text;
  }
  void create(const EventIndexes& indexes) {
    writer_->finish();
    indexes.create(db_, writer_->catalog(), writer_->loaded_events());
  }
  static constexpr const char* kIndexes =
      "SELECT sql FROM sqlite_schema WHERE type = 'index' ORDER BY name";

  Database db_{":memory:", "test", Database::Mode::kCreate};
  PreviousChoice previous_;
  std::optional<ValueWriter> writer_;
};

TEST_F(LinkedTable, LinksOutliveAColumnThatComesLate) {
  write(11, 1, "pause");
  write(12, 2, "pause");
  write(11, 3, "period");
  writer_->finish();
  write(11, 4, "think");
  writer_->finish();
  EXPECT_EQ(all("SELECT seq || ' ' || ifnull(prev_seq, '-') FROM ev_pause ORDER BY seq"),
            "1 -;2 -;3 1;4 3;");
}

TEST_F(LinkedTable, RowsOfAGroupAreBeforeEachOtherInAnyOrderOfTheirNames) {
  previous_.add("writeback:waiting", PreviousOf::kTask, "wait");
  previous_.add("writeback:woken", PreviousOf::kTask, "wait");
  writer_.emplace(db_, previous_);
  const auto put = [&](std::string_view name, std::int32_t tid) {
    writer_->write(writer_->event("writeback", name), 100, 0, tid, 0, {});
  };
  put("waiting", 11);
  put("woken", 12);
  put("woken", 11);
  put("waiting", 12);
  put("waiting", 12);
  put("waiting", 11);
  writer_->finish();
  const std::string links = "SELECT seq || ' ' || ifnull(prev_seq, '-') FROM ev_";
  EXPECT_EQ(all(links + "waiting ORDER BY seq"), "1 -;4 2;5 4;6 3;");
  EXPECT_EQ(all(links + "woken ORDER BY seq"), "2 -;3 1;");
}

TEST_F(LinkedTable, RowsThatCameOneEventAfterTheOtherAreLinkedAtTheEnd) {
  previous_.add("writeback:waiting", PreviousOf::kTask, "wait");
  previous_.add("writeback:woken", PreviousOf::kTask, "wait");
  previous_.add("writeback:counted", PreviousOf::kTask, "wait");
  previous_.add("writeback:alone", PreviousOf::kAny, "other");
  writer_.emplace(db_, previous_);
  const auto put = [&](std::string_view name, std::vector<std::pair<int, int>> rows) {
    const auto event = writer_->event("writeback", name);
    for (const auto& [seq, tid] : rows) writer_->write_at(seq, event, 100, 0, tid, 0, {});
  };
  put("waiting", {{1, 11}, {4, 12}, {5, 12}, {6, 11}});
  put("woken", {{2, 12}, {3, 11}, {7, 13}});
  put("alone", {{8, 11}, {9, 12}, {10, 11}});
  writer_->count(writer_->event("writeback", "counted"), 100, 11);  // it has no table
  writer_->finish();
  writer_->link_groups();
  const std::string links = "SELECT seq || ' ' || ifnull(prev_seq, '-') FROM ev_";
  EXPECT_EQ(all(links + "waiting ORDER BY seq"), "1 -;4 2;5 4;6 3;");
  EXPECT_EQ(all(links + "woken ORDER BY seq"), "2 -;3 1;7 -;");
  EXPECT_EQ(all(links + "alone ORDER BY seq"), "8 -;9 8;10 9;");
}

TEST_F(LinkedTable, IndexesHaveTheColumnsThatThereAre) {
  write(11, 1, "pause");
  EventIndexes indexes;
  indexes.add("writeback:pause", {"tid", "bdi", "pause"});
  indexes.add("writeback:pause", {"prev_seq"});
  indexes.add("writeback:pause", {"bdi", "tid"});  // its first column is not there
  indexes.add("writeback:other", {"tid"});         // no such event
  // Another event of that name.
  writer_->write(writer_->event("sched", "pause"), 100, 0, 11, 0, {});
  create(indexes);
  EXPECT_EQ(all(kIndexes),
            "CREATE INDEX \"ix_ev_pause__prev_seq\" ON \"ev_pause\" (\"prev_seq\");"
            "CREATE INDEX \"ix_ev_pause__tid__pause\" ON \"ev_pause\" (\"tid\", \"pause\");");
}

TEST_F(LinkedTable, IndexesOfSomeRowsHaveTheColumnsOfTheirCondition) {
  write(11, 1, "pause");
  EventIndexes indexes;
  indexes.add("writeback:pause", {"seq", "pause", "pause_ms", "tid"}, "pause > 0");
  indexes.add("writeback:pause", {"seq", "think"}, "pause > 0 OR think >= 500");
  create(indexes);
  EXPECT_EQ(all(kIndexes),
            "CREATE INDEX \"ix_ev_pause__seq__pause__tid\" ON \"ev_pause\" "
            "(\"seq\", \"pause\", \"tid\") WHERE pause > 0;");
}

TEST_F(LinkedTable, EventThatWasOnlyCountedHasNoIndex) {
  const auto event = writer_->event("writeback", "pause");
  writer_->count(event, 100, 11);
  EventIndexes indexes;
  indexes.add("writeback:pause", {"tid"});
  create(indexes);
  EXPECT_EQ(all(kIndexes), "");
}

// The text of a kernel log tells no thread.
TEST_F(LinkedTable, RowsOfNobodyAreCountedForNoTask) {
  write(11, 1, "pause");
  write(EventLead::kNoTid, 2, "pause");
  write(11, 3, "pause");
  writer_->finish();
  EXPECT_EQ(all("SELECT event || ' ' || tid || ' ' || loaded_count FROM event_task"),
            "writeback:pause 11 2;");
}

TEST_F(LinkedTable, RepeatsAreAboutTheNamedFields) {
  previous_.add_repeats("writeback:pause", {"pause", "not_there", "name"});
  writer_.emplace(db_, previous_);
  const auto event = writer_->event("writeback", "pause");
  const auto pause = writer_->field(event, {.name = "pause", .type = "long"});
  const auto think = writer_->field(event, {.name = "think", .type = "long"});
  const auto name = writer_->field(event, {.name = "name", .type = "char[4]"});
  const auto put = [&](std::vector<ValueWriter::Cell> cells) {
    writer_->write(event, 100, 0, 11, 0, cells);
  };
  put({{pause, std::int64_t{1}}, {think, std::int64_t{1}}});
  put({{think, std::int64_t{2}}, {pause, std::int64_t{1}}});  // the same in another order
  put({{pause, std::int64_t{2}}});
  put({{pause, std::int64_t{2}}, {name, std::string_view("vda")}});
  put({{name, std::string_view("vda")}, {pause, std::int64_t{2}}});
  put({{pause, std::int64_t{2}}, {name, std::string_view("vdb")}});
  put({{name, std::string_view("vdb")}});
  put({{name, std::string_view("vdb")}, {pause, Value()}});  // NULL is what is not named
  put({{name, std::string_view("vdb")}});
  writer_->finish();
  EXPECT_EQ(all("SELECT repeats_count FROM ev_pause ORDER BY seq"), "0;1;0;0;1;0;0;1;2;");
}

TEST_F(LinkedTable, ContextOfEventsInAnyOrderOfTheirNames) {
  previous_.add_repeats("writeback:pause", {"pause"});
  previous_.add_context("writeback:pause", "writeback:state", {"thresh"});
  previous_.add_context("writeback:pause", "writeback:rate", {});
  writer_.emplace(db_, previous_);
  const auto state = writer_->event("writeback", "state");
  const auto thresh = writer_->field(state, {.name = "thresh", .type = "long"});
  const auto dirty = writer_->field(state, {.name = "dirty", .type = "long"});
  const auto pause = writer_->event("writeback", "pause");
  const auto field = writer_->field(pause, {.name = "pause", .type = "long"});
  const auto rate = writer_->event("writeback", "rate");
  const auto call = [&](std::int64_t thresh_pages, std::int64_t dirty_pages) {
    const std::array<ValueWriter::Cell, 2> told{{{thresh, thresh_pages}, {dirty, dirty_pages}}};
    writer_->write(state, 100, 0, 11, 0, told);
    const std::array<ValueWriter::Cell, 1> cells{{{field, std::int64_t{7}}}};
    writer_->write(pause, 100, 0, 11, 0, cells);
  };
  call(10, 1);
  call(10, 2);
  call(20, 2);
  call(20, 2);
  writer_->write(rate, 100, 0, 5, 0, {});
  call(20, 2);
  call(20, 2);
  writer_->finish();
  EXPECT_EQ(all("SELECT repeats_count FROM ev_pause ORDER BY seq"), "0;1;0;1;0;1;");
}

}  // namespace
}  // namespace wbscope
