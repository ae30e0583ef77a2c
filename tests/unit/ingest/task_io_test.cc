// SPDX-License-Identifier: Apache-2.0
// Lines of task_io, also of strangers.
#include "sidecar/task_io.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wbscope {
namespace {

struct Parsed {
  std::vector<TaskIo> threads;
  TextProblems problems;
};

Parsed parsed(std::string_view text) {
  Parsed out;
  out.problems = parse_task_io(text, [&](const TaskIo& thread) { out.threads.push_back(thread); });
  return out;
}

TEST(TaskIo, ValuesByTheirNames) {
  const auto out = parsed(
      "start ts=5 tid=7 tgid=3 write_bytes=0 comm=a b=c comm=d\n"
      "exit ts=11 tid=8 of_the_future=x thrashing_delay_ns=13 write_bytes=4096 comm=\n"
      "end tid=9 comm=x");
  ASSERT_EQ(out.threads.size(), 3u);
  EXPECT_EQ(out.problems.lines, 0u);
  const TaskIo& first = out.threads[0];
  const TaskIo& second = out.threads[1];
  const TaskIo& third = out.threads[2];
  EXPECT_EQ(first.sample, "start");
  EXPECT_EQ(first.comm, "a b=c comm=d");
  EXPECT_EQ(first.values[0], 5);
  EXPECT_EQ(first.values[1], 7);
  EXPECT_EQ(first.values[2], 3);
  EXPECT_EQ(first.values[3], 0);
  EXPECT_EQ(first.values[4], std::nullopt);
  EXPECT_EQ(second.comm, "");
  EXPECT_EQ(second.values[2], std::nullopt);
  EXPECT_EQ(second.values[3], 4096);
  EXPECT_EQ(second.values[11], 13);
  EXPECT_EQ(third.sample, "end");
  EXPECT_EQ(third.values[0], std::nullopt);
}

TEST(TaskIo, NamesAreUnescaped) {
  const auto out = parsed("exit tid=1 comm=a\\nb\\\\n\\x\\");
  ASSERT_EQ(out.threads.size(), 1u);
  EXPECT_EQ(out.threads[0].comm, "a\nb\\n\\x\\");
}

TEST(TaskIo, LinesThatAreNone) {
  for (const auto* line :
       {"exit", "exit ", "exit tid=1", "exit tid=1 ", "exit tid=1 com", "exit comm=a",
        "exit tid= comm=a", "exit tid=1x comm=a", "exit tid=9223372036854775808 comm=a",
        "exit tid=1 write_bytes comm=a", "exit  tid=1 comm=a", "later tid=1 comm=a", " exit tid=1",
        "exit\ttid=1 comm=a", "tid=1 comm=a"}) {
    const auto out = parsed(line);
    EXPECT_TRUE(out.threads.empty()) << line;
    EXPECT_EQ(out.problems.lines, 1u) << line;
  }
}

TEST(TaskIo, ALineCutShortSpoilsNoOther) {
  const std::string whole = "exit ts=1 tid=2 write_bytes=3 comm=dd\n";
  for (std::size_t size = 0; size < whole.size() - 3; ++size) {
    const auto out = parsed(whole + whole.substr(0, size) + "\n" + whole);
    EXPECT_EQ(out.threads.size(), 2u) << size;
    EXPECT_EQ(out.problems.lines, size == 0 ? 0u : 1u) << size;
  }
  EXPECT_EQ(parsed("\n\n").problems.lines, 0u);
  EXPECT_EQ(parsed("").problems.lines, 0u);
}

}  // namespace
}  // namespace wbscope
