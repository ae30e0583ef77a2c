// SPDX-License-Identifier: Apache-2.0
// Reporter: JSON lines that a JSON parser reads back, and plain text.
#include "base/reporter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sink/database.h"

namespace wbscope {
namespace {

template <typename Action>
std::string stderr_of(Action action) {
  ::testing::internal::CaptureStderr();
  action();
  return ::testing::internal::GetCapturedStderr();
}

// A member of a JSON document, as SQLite's parser reads it.
std::string member(std::string_view document, std::string_view path) {
  Database db(":memory:", "test", Database::Mode::kCreate);
  Statement rows(db, "SELECT json_valid(?1), ?1 ->> ?2");
  rows.bind_text(1, document);
  rows.bind_text(2, path);
  if (!rows.step() || rows.integer(0) != 1) return "not JSON: " + std::string(document);
  return rows.is_null(1) ? "null" : std::string(rows.text(1));
}

Message message_with(std::string text) {
  return {.slug = "a-slug", .object = "run.dat", .text = std::move(text), .at = {}, .have = {},
          .effect = {}, .fix = {}};
}

std::string json_error(const Message& message) {
  return stderr_of([&] { Reporter(true).error(message); });
}

class JsonText : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Escapes, JsonText,
                         ::testing::Values("plain", "", "\"quoted\"", "C:\\path\\", "\\\"",
                                           "tab\there", "two\nlines\r\n", "\x01\x1f bell \x07",
                                           "gr\xc3\xbc\xc3\x9f", "\x7f", "{\"a\":1}", "</script>"));

TEST_P(JsonText, IsReadBack) {
  const std::string line = json_error(message_with(GetParam()));
  EXPECT_EQ(member(line, "message"), GetParam());
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);  // one object a line
  EXPECT_EQ(line.back(), '\n');
}

TEST(Reporter, BytesThatAreNotUtf8AreReplacedInJson) {
  EXPECT_EQ(member(json_error(message_with("a\xff" "b")), "message"), "a\xef\xbf\xbd" "b");
}

TEST(Reporter, JsonOfAMessage) {
  Message message = message_with("page holds 5 of 4096 bytes");
  message.at = "cpu 3, file offset 0x10";
  message.fix = "copy it again";
  const std::string line = json_error(message);
  EXPECT_EQ(member(line, "type"), "error");
  EXPECT_EQ(member(line, "slug"), "a-slug");
  EXPECT_EQ(member(line, "object"), "run.dat");
  EXPECT_EQ(member(line, "at"), "cpu 3, file offset 0x10");
  EXPECT_EQ(member(line, "fix"), "copy it again");
  EXPECT_EQ(member(line, "effect"), "null");  // empty parts are left out
  EXPECT_EQ(member(stderr_of([&] { Reporter(true).warning(message); }), "type"), "warning");
}

TEST(Reporter, TextOfAMessage) {
  Message message = message_with("page holds 5 of 4096 bytes");
  message.effect = "nothing was written";
  EXPECT_EQ(stderr_of([&] { Reporter(false).error(message); }),
            "error[a-slug]: run.dat: page holds 5 of 4096 bytes\n  effect: nothing was written\n");
}

TEST(Reporter, Done) {
  const std::string line = stderr_of([] { Reporter(true).done("a \"b\".db", 5, 3, true); });
  EXPECT_EQ(member(line, "type"), "done");
  EXPECT_EQ(member(line, "events_count"), "5");
  EXPECT_EQ(member(line, "loaded_count"), "3");
  EXPECT_EQ(member(line, "damaged"), "1");
  EXPECT_EQ(member(line, "output"), "a \"b\".db");
  EXPECT_EQ(stderr_of([] { Reporter(false).done("x.db", 5, 3, false); }),
            "wrote x.db: 5 events counted, 3 loaded\n");
}

TEST(Reporter, ProgressIsForProgramsOnly) {
  EXPECT_EQ(stderr_of([] { Reporter(false).progress(1, 2); }), "");
  const std::string line = stderr_of([] { Reporter(true).progress(1, 1ull << 40); });
  EXPECT_EQ(member(line, "done_bytes"), "1");
  EXPECT_EQ(member(line, "total_bytes"), "1099511627776");
}

}  // namespace
}  // namespace wbscope
