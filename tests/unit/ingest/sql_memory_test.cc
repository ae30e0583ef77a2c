// SPDX-License-Identifier: Apache-2.0
// What SQLite may take of the memory, all connections together.
#include "sink/sql_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "sink/database.h"

namespace wbscope {
namespace {

constexpr const char* kManyBytes =
    "CREATE TABLE t AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 64)"
    " SELECT randomblob(1048576) AS b FROM c";

std::string slug_of(Database& db, const std::string& sql) {
  try {
    db.exec(sql);
  } catch (const Error& error) {
    return error.message().slug;
  }
  return "";
}

TEST(SqlMemory, IsLimitedAndGivenBack) {
  SqlLimits limits;
  limits.memory_bytes = 32 << 20;
  for (int round = 0; round < 3; ++round) {
    Database db(":memory:", "test", Database::Mode::kCreate);
    db.limit(limits);
    EXPECT_EQ(slug_of(db, kManyBytes), "memory-limit");
    EXPECT_EQ(slug_of(db, "CREATE TABLE small AS SELECT randomblob(4194304)"), "");
  }
  limits.memory_bytes = 0;  // no limit
  Database db(":memory:", "test", Database::Mode::kCreate);
  db.limit(limits);
  EXPECT_EQ(slug_of(db, kManyBytes), "");
  limit_sql_memory(SqlLimits{}.memory_bytes);
}

TEST(SqlMemory, IsThatOfAllConnections) {
  SqlLimits limits;
  limits.memory_bytes = 32 << 20;
  // Three times that while it is made.
  const std::string some = "CREATE TABLE t AS SELECT randomblob(8000000) AS b";
  {
    Database alone(":memory:", "alone", Database::Mode::kCreate);
    alone.limit(limits);
    EXPECT_EQ(slug_of(alone, some), "");
  }
  Database first(":memory:", "first", Database::Mode::kCreate);
  Database second(":memory:", "second", Database::Mode::kCreate);
  first.limit(limits);
  second.limit(limits);
  EXPECT_EQ(slug_of(first, "CREATE TABLE t(b)"), "");
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(slug_of(first, "INSERT INTO t VALUES (randomblob(4000000))"), "");
  }
  EXPECT_EQ(slug_of(second, some), "memory-limit");
  limit_sql_memory(SqlLimits{}.memory_bytes);
}

}  // namespace
}  // namespace wbscope
