// SPDX-License-Identifier: Apache-2.0
// LaneQueue: many streams of work, each in its own order, by a few threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "pipeline/worker_pool.h"

namespace wbscope {

// A lane is worked on by one thread at a time, for a step. The lane that has
// come the least far is next, so that all are about as far at any moment.
//
// What steps made is given out in the order in which one thread would have
// made it, so that the same input gives the same output.
class LaneQueue {
 public:
  // What a step left behind: how far the lane has come, and whether there is
  // more of it.
  struct Step {
    std::int64_t reached = INT64_MIN;
    bool more = false;
  };
  using Work = std::function<Step(std::size_t lane, std::size_t worker)>;
  using GiveOut = std::function<void(std::size_t lane)>;  // what its last step made
  using OnTick = std::function<void()>;  // now and then; may throw to stop

  // Pre: pool has nothing else to do, and at least workers threads.
  LaneQueue(WorkerPool& pool, std::size_t workers) : pool_(pool), workers_(workers) {}
  // Waits for steps that are under way.
  ~LaneQueue();
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;

  // Until all lanes have ended. give_out() follows each step, by one thread at a
  // time, before the next step of that lane. Raises: what work, give_out or
  // on_tick raised.
  void run(std::size_t lanes, const Work& work, const GiveOut& give_out, const OnTick& on_tick);

 private:
  enum class State : std::uint8_t { kIdle, kAtWork, kMade };
  struct Lane {
    State state = State::kIdle;
    Step step;
  };
  using Place = std::pair<std::int64_t, std::size_t>;  // reached and given out, lane

  void serve(std::size_t worker, const Work& work, const GiveOut& give_out);
  // With the mutex held; true when there was something to give out.
  bool give_out_next(std::unique_lock<std::mutex>& lock, const GiveOut& give_out);
  bool work_on_next(std::unique_lock<std::mutex>& lock, std::size_t worker, const Work& work);
  void fail(std::exception_ptr problem);

  WorkerPool& pool_;
  std::size_t workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  std::set<Place> order_;   // of lanes that have not ended
  std::size_t ahead_ = 0;   // lanes that are at work or wait to be given out
  bool is_giving_out_ = false;
  std::size_t serving_ = 0;  // workers
  bool stopping_ = false;
  std::exception_ptr failure_;
};

}  // namespace wbscope
