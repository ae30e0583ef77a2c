// SPDX-License-Identifier: Apache-2.0
// Many streams of work, each in its own order, by a few threads.
#include "pipeline/lane_queue.h"

#include <chrono>

namespace wbscope {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

LaneQueue::~LaneQueue() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return serving_ == 0; });
}

void LaneQueue::serve(std::size_t worker, const Work& work) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty() || at_work_ == 0; });
    if (stopping_ || waiting_.empty()) break;
    const std::size_t lane = waiting_.top().second;
    waiting_.pop();
    ++at_work_;
    lock.unlock();
    Step step;
    std::exception_ptr problem;
    try {
      step = work(lane, worker);
    } catch (...) {  // carried to run(), which rethrows it
      problem = std::current_exception();
    }
    lock.lock();
    --at_work_;
    if (problem && !failure_) failure_ = problem;
    if (problem) stopping_ = true;
    if (step.more) waiting_.emplace(step.reached, lane);
    changed_.notify_all();
  }
  --serving_;
  changed_.notify_all();
}

void LaneQueue::run(std::size_t lanes, const Work& work, const OnTick& on_tick) {
  std::unique_lock lock(mutex_);
  for (std::size_t lane = 0; lane < lanes; ++lane) waiting_.emplace(INT64_MIN, lane);
  serving_ = workers_;
  for (std::size_t worker = 0; worker < workers_; ++worker) {
    pool_.submit([this, worker, &work] { serve(worker, work); });
  }
  while (serving_ > 0) {
    changed_.wait_for(lock, kTick, [this] { return serving_ == 0; });
    lock.unlock();
    try {
      on_tick();
    } catch (...) {
      lock.lock();
      stopping_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return serving_ == 0; });
      throw;
    }
    lock.lock();
  }
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace wbscope
