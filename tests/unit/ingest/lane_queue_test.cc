// SPDX-License-Identifier: Apache-2.0
// LaneQueue: each lane in its order, the one that is behind first, errors.
#include "pipeline/lane_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace wbscope {
namespace {

TEST(LaneQueue, WorksOnEveryLaneUntilItEnds) {
  WorkerPool pool(3);
  LaneQueue queue(pool, 3);
  std::vector<int> steps(50);  // of one lane: one thread at a time
  std::atomic<int> all = 0;
  queue.run(
      steps.size(),
      [&](std::size_t lane, std::size_t worker) -> LaneQueue::Step {
        EXPECT_LT(worker, 3u);
        ++all;
        return {.reached = ++steps[lane], .more = steps[lane] <= static_cast<int>(lane)};
      },
      [](std::size_t) {}, [] {});
  int expected = 0;
  for (int lane = 0; lane < 50; ++lane) {
    EXPECT_EQ(steps[static_cast<std::size_t>(lane)], lane + 1);
    expected += lane + 1;
  }
  EXPECT_EQ(all, expected);
}

TEST(LaneQueue, TheLaneThatIsBehindComesFirst) {
  WorkerPool pool(1);
  LaneQueue queue(pool, 1);
  std::vector<std::size_t> order;
  std::vector<std::int64_t> reached(2);
  queue.run(
      2,
      [&](std::size_t lane, std::size_t) -> LaneQueue::Step {
        order.push_back(lane);
        reached[lane] += lane == 0 ? 10 : 4;
        return {.reached = reached[lane], .more = reached[lane] < 12};
      },
      [](std::size_t) {}, [] {});
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 1, 1, 0}));
}

TEST(LaneQueue, NoLanes) {
  WorkerPool pool(2);
  LaneQueue queue(pool, 2);
  queue.run(
      0, [](std::size_t, std::size_t) { return LaneQueue::Step{}; }, [](std::size_t) {}, [] {});
}

TEST(LaneQueue, AnErrorOfAStepEndsAll) {
  WorkerPool pool(2);
  LaneQueue queue(pool, 2);
  const auto work = [](std::size_t lane, std::size_t) -> LaneQueue::Step {
    if (lane == 3) throw std::runtime_error("lane 3");
    return {.reached = 1, .more = true};
  };
  EXPECT_THROW(queue.run(5, work, [](std::size_t) {}, [] {}), std::runtime_error);
}

TEST(LaneQueue, AnErrorOfTheTickEndsAll) {
  WorkerPool pool(2);
  LaneQueue queue(pool, 2);
  const auto work = [](std::size_t, std::size_t) -> LaneQueue::Step {
    return {.reached = 1, .more = true};
  };
  EXPECT_THROW(
      queue.run(5, work, [](std::size_t) {}, [] { throw std::runtime_error("stop"); }),
      std::runtime_error);
}

TEST(LaneQueue, AnErrorOfGivingOutEndsAll) {
  WorkerPool pool(2);
  LaneQueue queue(pool, 2);
  const auto work = [](std::size_t, std::size_t) -> LaneQueue::Step {
    return {.reached = 1, .more = true};
  };
  EXPECT_THROW(
      queue.run(5, work, [](std::size_t) { throw std::runtime_error("full"); }, [] {}),
      std::runtime_error);
}

// Whatever the threads do, as one thread would.
TEST(LaneQueue, TheOrderDoesNotDependOnThreads) {
  const auto order_of = [](unsigned threads) {
    WorkerPool pool(threads);
    LaneQueue queue(pool, threads);
    constexpr std::int64_t kEnd = 200;
    std::vector<std::int64_t> reached(7);
    std::vector<std::pair<std::size_t, std::int64_t>> order;
    queue.run(
        reached.size(),
        [&](std::size_t lane, std::size_t) -> LaneQueue::Step {
          reached[lane] += static_cast<std::int64_t>(lane) * 3 + 1;
          if (lane % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
          return {.reached = reached[lane], .more = reached[lane] < kEnd};
        },
        [&](std::size_t lane) { order.emplace_back(lane, reached[lane]); }, [] {});
    return order;
  };
  const auto expected = order_of(1);
  for (const unsigned threads : {2u, 3u, 8u}) EXPECT_EQ(order_of(threads), expected);
}

}  // namespace
}  // namespace wbscope
