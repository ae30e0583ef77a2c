// SPDX-License-Identifier: Apache-2.0
// Paths of values in JSON: never shorter than SQLite's.
#include "sidecar/json_paths.h"

#include <gtest/gtest.h>

#include <string>

#include "sink/database.h"
#include "support.h"

namespace wbscope {
namespace {

std::size_t longest_of_sqlite(const std::string& json) {
  const testing::TempDir dir;
  Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
  Statement rows(db, "SELECT max(length(CAST(fullkey AS BLOB))) FROM json_tree(?)");
  rows.bind_text(1, json);
  std::size_t longest = 0;
  while (rows.step()) longest = static_cast<std::size_t>(rows.integer(0));
  return longest;
}

TEST(JsonPaths, AsLongAsThoseOfSqlite) {
  for (const std::string json : {
           R"(1)", R"({})", R"([])", R"("a:b")", R"({"a": 1})", R"({"a b" : {"c": [1, 2]}})",
           R"([[[7]], {"k": {"l": {}}}])", R"({"x": "y", "jobs": [{"error": 0}]})",
           R"({"a\"b": {"c\\": 1}, "long": "{[\"no key\":"})", R"({"a": {"b": 1}, "c": {"d": 2}})",
       }) {
    const std::size_t wanted = longest_of_sqlite(json);
    EXPECT_GE(longest_path(json), wanted) << json;
    EXPECT_LE(longest_path(json), wanted + 40) << json;
  }
}

TEST(JsonPaths, KeysOfAllLevelsAreAddedAndTakenOff) {
  const std::string key(100, 'k');
  std::string deep = "1";
  for (int level = 0; level < 10; ++level) deep = "{\"" + key + "\":" + deep + "}";
  EXPECT_EQ(longest_path(deep), 1u + 10 * 103);
  std::string wide = "{\"a\":1";
  for (int i = 0; i < 100; ++i) wide += ",\"b\":{\"c\":[]}";
  EXPECT_LT(longest_path(wide + "}"), 30u);
}

TEST(JsonPaths, WhatIsNoJsonEnds) {
  for (const std::string text : {"", "\"", "\"a\\", "}}]]", "{\"a\":", "[[[["}) {
    EXPECT_LT(longest_path(text), 100u) << text;
  }
}

}  // namespace
}  // namespace wbscope
