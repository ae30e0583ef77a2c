// SPDX-License-Identifier: Apache-2.0
// Which time stamps are wrong, and what is none: pauses, old pages, jumps of
// whole machines.
#include "pipeline/stamp_check.h"

#include <gtest/gtest.h>

#include <limits>

namespace wbscope {
namespace {

constexpr std::int64_t kHour = 3600ll * 1'000'000'000;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kYear = 365 * kDay;
constexpr std::int64_t kStart = 100 * kDay;

struct Piece {
  std::int64_t first;
  std::uint64_t records;
  std::uint64_t pages = 1;
};

// Records a ms apart, in pieces with a jump between them.
StampStream stream(std::uint32_t cpu, const std::vector<Piece>& pieces, std::size_t most = 4096) {
  StampStream made{.cpu = cpu, .buffer = 0, .track = StampTrack(most)};
  std::int64_t last = 0;
  std::uint64_t records = 0;
  std::uint64_t pages = 0;
  for (const Piece& piece : pieces) {
    made.track.begin(piece.first, last, records, pages, {});
    last = piece.first + static_cast<std::int64_t>(piece.records) * 1'000'000;
    records += piece.records;
    pages += piece.pages;
  }
  made.track.end(last, records, pages);
  return made;
}

StampPlan judged(const std::vector<StampStream>& streams, bool overwritten = false) {
  return judge_stamps(streams, {.overwritten = overwritten,
                                .place_of = [](const StampStream& of, const StampSegment&) {
                                  return "cpu " + std::to_string(of.cpu);
                                }});
}

TEST(StampCheck, StepsHaveNoSign) {
  EXPECT_FALSE(is_long_step(0, kHour));
  EXPECT_TRUE(is_long_step(0, kHour + 1));
  EXPECT_TRUE(is_long_step(kHour + 1, 0));
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(is_long_step(kLeast, kMost));
  EXPECT_TRUE(is_long_step(kMost, kLeast));
  EXPECT_FALSE(is_long_step(kLeast, kLeast));
}

TEST(StampCheck, NoJumpIsNothing) {
  EXPECT_TRUE(judged({stream(0, {{kStart, 500, 9}}), stream(1, {{kStart, 3}})}).is_empty());
  EXPECT_TRUE(judged({}).is_empty());
  EXPECT_TRUE(judged({StampStream{.cpu = 0, .buffer = 0, .track = StampTrack(4)}}).is_empty());
}

TEST(StampCheck, APartThatContradictsItsPlace) {
  for (const std::int64_t off : {2 * kHour + kDay, kYear, -kYear}) {
    const StampPlan plan = judged(
        {stream(0, {{kStart, 500, 9}, {kStart + off, 100, 2}, {kStart + kHour / 2, 500, 9}})});
    ASSERT_EQ(plan.places, 1u);
    const BadStamp& bad = plan.bad.at(0);
    EXPECT_EQ(bad.ts_found, kStart + off);
    EXPECT_EQ(bad.records, 100u);
    EXPECT_EQ(bad.before, kStart + 500'000'000);
    EXPECT_EQ(bad.ts, bad.before);
    EXPECT_EQ(bad.after, kStart + kHour / 2);
    EXPECT_EQ(plan.streams[0].of(0, kStart), std::nullopt);
    EXPECT_EQ(plan.streams[0].of(1, kStart + off), bad.ts);
    EXPECT_EQ(plan.streams[0].of(2, kStart + kHour / 2), std::nullopt);
    EXPECT_EQ(plan.streams[0].shown(kStart + off - 5), bad.ts);
    EXPECT_EQ(plan.streams[0].shown(kStart + 5), kStart + 5);
    EXPECT_EQ(plan.first_ts, kStart);
  }
}

TEST(StampCheck, APageAtTheBeginOrEnd) {
  const StampStream other = stream(1, {{kStart, 500, 9}});
  StampPlan plan = judged({stream(0, {{kStart - kYear, 60}, {kStart, 500, 9}}), other});
  ASSERT_EQ(plan.places, 1u);
  EXPECT_EQ(plan.bad[0].ts, kStart);
  EXPECT_EQ(plan.first_ts, kStart);
  plan = judged({stream(0, {{kStart, 500, 9}, {kStart + kYear, 60}}), other});
  ASSERT_EQ(plan.places, 1u);
  EXPECT_EQ(plan.bad[0].ts, kStart + 500'000'000);
  // Two pages are no accident.
  EXPECT_TRUE(judged({stream(0, {{kStart, 500, 9}, {kStart + kYear, 60, 2}}), other}).is_empty());
  // All that a CPU has.
  plan = judged({stream(0, {{kStart + kYear, 60}}), other});
  ASSERT_EQ(plan.places, 1u);
  EXPECT_EQ(plan.bad[0].ts, kStart + 500'000'000);
}

TEST(StampCheck, APauseIsNone) {
  // On all CPUs, and what follows is more than a page.
  const std::vector<Piece> paused{{kStart, 500, 9}, {kStart + 30 * kHour, 300, 5}};
  EXPECT_TRUE(judged({stream(0, paused), stream(1, paused)}).is_empty());
  EXPECT_TRUE(judged({stream(0, paused)}).is_empty());
  // Less than a day.
  EXPECT_TRUE(judged({stream(0, {{kStart, 500, 9}, {kStart + kDay / 2, 2}})}).is_empty());
  // A page on each of two CPUs.
  const std::vector<Piece> late{{kStart, 500, 9}, {kStart + kYear, 20}};
  EXPECT_TRUE(judged({stream(0, late), stream(1, late)}).is_empty());
}

TEST(StampCheck, NothingIsTheLargerPart) {
  // A clock that was set: half of all records are not wrong.
  EXPECT_TRUE(judged({stream(0, {{kStart, 500, 9}, {kStart - 5 * kHour, 400, 8}})}).is_empty());
  EXPECT_TRUE(judged({stream(0, {{kStart, 1}, {kStart + kYear, 1}})}).is_empty());
  // The others are 200, before it and behind.
  const auto between = [](std::uint64_t records) {
    return judged({stream(
        0, {{kStart, 100, 9}, {kStart + kYear, records, 2}, {kStart + kHour / 2, 100, 9}})});
  };
  EXPECT_EQ(between(100).places, 1u);
  EXPECT_TRUE(between(101).is_empty());
}

TEST(StampCheck, OldPagesOfARingBufferThatWasOverwritten) {
  const StampStream busy = stream(0, {{kStart, 5000, 99}});
  const StampStream quiet = stream(1, {{kStart - 3 * kDay, 5}, {kStart, 5}});
  EXPECT_TRUE(judged({busy, quiet}, true).is_empty());
  EXPECT_FALSE(judged({busy, quiet}, false).is_empty());
  EXPECT_FALSE(judged({busy, stream(1, {{kStart - kYear, 5}, {kStart, 5}})}, true).is_empty());
  // What is old is before the others, and nothing behind them is.
  EXPECT_FALSE(judged({busy, stream(1, {{kStart, 5}, {kStart + 3 * kDay, 5}})}, true).is_empty());
}

TEST(StampCheck, BuffersAreJudgedApart) {
  StampStream instance = stream(0, {{kStart + kYear, 60}});
  instance.buffer = 1;
  EXPECT_TRUE(judged({stream(0, {{kStart, 500, 9}}), instance}).is_empty());
}

TEST(StampCheck, MoreJumpsThanAreKept) {
  std::vector<Piece> pieces;
  for (int i = 0; i < 40; ++i) {
    pieces.push_back({kStart + 10'000 * kDay * (i % 2), 3});
  }
  pieces.push_back({kStart, 5000, 99});
  constexpr std::size_t kMost = 16;
  const StampPlan plan = judged({stream(0, pieces, kMost)});
  EXPECT_EQ(plan.places, 8u);
  // By time alone, behind those that are kept.
  EXPECT_EQ(plan.streams[0].of(40, kStart), std::nullopt);
  EXPECT_TRUE(plan.streams[0].of(39, kStart + 10'000 * kDay).has_value());
}

TEST(StampCheck, ListsTheFirstPlaces) {
  std::vector<Piece> pieces;
  for (int i = 0; i < 1500; ++i) {
    pieces.push_back({kStart, 10});
    pieces.push_back({kStart + kYear, 1});
  }
  pieces.push_back({kStart, 10});
  const StampPlan plan = judged({stream(0, pieces)});
  EXPECT_EQ(plan.places, 1500u);
  EXPECT_EQ(plan.bad.size(), StampPlan::kMostListed);
}

TEST(StampCheck, SegmentsOfManyStreamsAreBounded) {
  EXPECT_EQ(most_segments(1), 4096u);
  EXPECT_EQ(most_segments(65536), 16u);
  EXPECT_GT(most_segments(0), 0u);
}

}  // namespace
}  // namespace wbscope
