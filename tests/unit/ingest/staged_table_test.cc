// SPDX-License-Identifier: Apache-2.0
// Rows that wait outside the file are in it once published.
#include "sink/staged_table.h"

#include <gtest/gtest.h>

#include "sink/task_counts.h"
#include "sink/time_index.h"

namespace wbscope {
namespace {

std::string text(Database& db, const std::string& sql) {
  Statement rows(db, sql);
  return rows.step() ? std::string(rows.text(0)) : "no row";
}

TEST(StagedTable, IsInTheFileOncePublished) {
  Database db(":memory:", "test", Database::Mode::kCreate);
  StagedTable table(db, "t", "(a INTEGER, b INTEGER)", true);
  db.exec("INSERT INTO t VALUES (2, 1), (1, 2), (1, 1)");
  EXPECT_EQ(text(db, "SELECT count(*) FROM main.sqlite_schema"), "0");
  table.publish();
  EXPECT_EQ(text(db, "SELECT group_concat(a || b) FROM main.t"), "11,12,21");
  EXPECT_EQ(text(db, "SELECT count(*) FROM temp.sqlite_schema"), "0");
  table.publish();  // a second time does nothing
  EXPECT_EQ(text(db, "SELECT count(*) FROM t"), "3");
}

TEST(StagedTable, OneThatIsNotStagedIsInTheFileAtOnce) {
  Database db(":memory:", "test", Database::Mode::kCreate);
  StagedTable table(db, "t", "(a INTEGER, b INTEGER)", false);
  db.exec("INSERT INTO t VALUES (1, 1)");
  table.publish();
  EXPECT_EQ(text(db, "SELECT count(*) FROM main.t"), "1");
}

TEST(StagedTable, CountsOfTasksAndTimesAreTheSameEitherWay) {
  std::string found[2];
  for (const bool is_staged : {false, true}) {
    Database db(":memory:", "test", Database::Mode::kCreate);
    TimeIndex times(db, is_staged);
    TaskCounts counts(db, is_staged);
    const std::uint32_t event = counts.add("writeback:balance_dirty_pages");
    for (std::int64_t seq = 1; seq <= 600'000; ++seq) {
      times.note(seq, 10 * seq);
      counts.note(event, static_cast<std::int32_t>(seq % 300'000), seq);  // more than are kept
    }
    times.publish();
    counts.publish();
    found[is_staged ? 1 : 0] =
        text(db, "SELECT count(*) || ' ' || sum(ts) FROM main.time_index") + " " +
        text(db, "SELECT count(*) || ' ' || sum(loaded_count) || ' ' || sum(first_seq) || ' ' ||"
                 " sum(last_seq) FROM main.event_task");
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_TRUE(found[0].ends_with("300000 600000 45000150000 135000150000")) << found[0];
}

}  // namespace
}  // namespace wbscope
