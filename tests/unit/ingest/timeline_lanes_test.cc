// SPDX-License-Identifier: Apache-2.0
// TimelineLanes: rows in their order from other threads, their errors, and an end.
#include "timeline_lanes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "support.h"

namespace wbscope {
namespace {

using testing::TempDir;

constexpr unsigned kThreads = 2;

std::string view_of(const std::string& name, int rows) {
  return "CREATE TEMP VIEW " + name +
         " AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT " +
         std::to_string(rows) +
         ") SELECT n AS ts, NULL AS dur, 'track' AS track, 'name' AS name, n AS value,"
         " 'kB' AS unit FROM c;";
}

class Lanes : public ::testing::Test {
 protected:
  void SetUp() override { const Database made(database_, database_, Database::Mode::kCreate); }

  [[nodiscard]] std::unique_ptr<Database> open(const std::string& script) const {
    auto db = std::make_unique<Database>(database_, database_, Database::Mode::kReadOnly);
    db->exec(script);
    return db;
  }

  static std::vector<std::int64_t> times(TimelineLanes& lanes, const std::string& view) {
    std::vector<std::int64_t> found;
    DrawnRow row;
    while (std::optional<RowBatch> batch = lanes.next(view)) {
      while (batch->next(row)) found.push_back(row.row.ts);
    }
    return found;
  }

  const TempDir folder_;
  const std::string database_ = folder_.path("run.db");
};

TEST_F(Lanes, GiveTheRowsOfEachViewInTheirOrder) {
  for (const unsigned threads : {1u, kThreads}) {
    TimelineLanes lanes(database_, {}, {{.setup_path = "-", .views = {"a", "b"}}}, threads);
    lanes.give({view_of("a", 20'000) + view_of("b", 3)});
    EXPECT_EQ(times(lanes, "b"), (std::vector<std::int64_t>{1, 2, 3}));
    const std::vector<std::int64_t> all = times(lanes, "a");
    ASSERT_EQ(all.size(), 20'000u);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int64_t>(i) + 1);
  }
}

TEST_F(Lanes, TellWhatStoppedThem) {
  TimelineLanes lanes(database_, {}, {{.setup_path = "-", .views = {"a"}}}, kThreads);
  lanes.give({"SELECT * FROM nothing;"});
  EXPECT_THROW((void)lanes.next("a"), Error);
}

// Who forks after it is alone: in a child, what another thread had locked stays locked.
TEST_F(Lanes, AreOverOnceTheyAreEnded) {
  TimelineLanes lanes(database_, {}, {{.setup_path = "-", .views = {"a"}}}, kThreads);
  std::unique_ptr<Database> taken = open(view_of("b", 3));
  lanes.take(taken, {"b"});
  EXPECT_EQ(taken, nullptr);
  lanes.give({view_of("a", 3)});
  EXPECT_EQ(times(lanes, "a").size(), 3u);
  EXPECT_EQ(times(lanes, "b").size(), 3u);
  lanes.end();
  std::unique_ptr<Database> late = open(view_of("c", 3));
  lanes.take(late, {"c"});
  EXPECT_NE(late, nullptr);  // no thread is left that would have it
  EXPECT_FALSE(lanes.has("c"));
}

TEST_F(Lanes, EndWithRowsThatNobodyAsksFor) {
  TimelineLanes lanes(database_, {}, {{.setup_path = "-", .views = {"a", "b"}}}, kThreads);
  // 100 MB: the lane waits for a reader.
  lanes.give({"CREATE TEMP VIEW a AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1"
              " FROM c LIMIT 10000) SELECT n AS ts, 1 AS dur, 'track' AS track,"
              " hex(zeroblob(5000)) AS name, NULL AS value, NULL AS unit FROM c;" +
              view_of("b", 3)});
  ASSERT_TRUE(lanes.next("a").has_value());
  lanes.end();
}

}  // namespace
}  // namespace wbscope
