// SPDX-License-Identifier: Apache-2.0
// LaneQueue: many streams of work, each in its own order, by a few threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <utility>
#include <vector>

#include "pipeline/worker_pool.h"

namespace wbscope {

// A lane is worked on by one thread at a time, for a step. The lane that has
// come the least far is next, so that all are about as far at any moment.
class LaneQueue {
 public:
  // What a step left behind: how far the lane has come, and whether there is
  // more of it.
  struct Step {
    std::int64_t reached = INT64_MIN;
    bool more = false;
  };
  using Work = std::function<Step(std::size_t lane, std::size_t worker)>;
  using OnTick = std::function<void()>;  // now and then; may throw to stop

  // Pre: pool has nothing else to do, and at least workers threads.
  LaneQueue(WorkerPool& pool, std::size_t workers) : pool_(pool), workers_(workers) {}
  // Waits for steps that are under way.
  ~LaneQueue();
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;

  // Until all lanes have ended. Raises: what work or on_tick raised.
  void run(std::size_t lanes, const Work& work, const OnTick& on_tick);

 private:
  using Entry = std::pair<std::int64_t, std::size_t>;  // reached, lane
  void serve(std::size_t worker, const Work& work);

  WorkerPool& pool_;
  std::size_t workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> waiting_;
  std::size_t at_work_ = 0;   // lanes
  std::size_t serving_ = 0;   // workers
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace wbscope
