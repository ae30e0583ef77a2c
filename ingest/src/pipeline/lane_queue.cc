// SPDX-License-Identifier: Apache-2.0
// Many streams of work, each in its own order, by a few threads.
#include "pipeline/lane_queue.h"

#include <chrono>

namespace wbscope {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
// What waits to be given out takes memory.
constexpr std::size_t kMostAheadOfAWorker = 2;

}  // namespace

LaneQueue::~LaneQueue() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return serving_ == 0; });
}

void LaneQueue::fail(std::exception_ptr problem) {
  if (!failure_) failure_ = std::move(problem);
  stopping_ = true;
}

// The lane that is behind all others, once its step is made.
bool LaneQueue::give_out_next(std::unique_lock<std::mutex>& lock, const GiveOut& give_out) {
  if (is_giving_out_ || order_.empty()) return false;
  const auto first = order_.begin();
  const std::size_t index = first->second;
  if (lanes_[index].state != State::kMade) return false;
  is_giving_out_ = true;
  lock.unlock();
  std::exception_ptr problem;
  try {
    give_out(index);
  } catch (...) {  // carried to run(), which rethrows it
    problem = std::current_exception();
  }
  lock.lock();
  is_giving_out_ = false;
  if (problem) fail(problem);
  Lane& lane = lanes_[index];
  lane.state = State::kIdle;
  --ahead_;
  order_.erase(first);
  if (lane.step.more) order_.emplace(lane.step.reached, index);
  changed_.notify_all();
  return true;
}

bool LaneQueue::work_on_next(std::unique_lock<std::mutex>& lock, std::size_t worker,
                             const Work& work) {
  const bool is_full = ahead_ >= kMostAheadOfAWorker * workers_;
  for (auto place = order_.begin(); place != order_.end(); ++place) {
    // The first is what everybody waits for.
    if (is_full && place != order_.begin()) return false;
    const std::size_t index = place->second;
    Lane& lane = lanes_[index];
    if (lane.state != State::kIdle) continue;
    lane.state = State::kAtWork;
    ++ahead_;
    lock.unlock();
    Step step;
    std::exception_ptr problem;
    try {
      step = work(index, worker);
    } catch (...) {  // carried to run(), which rethrows it
      problem = std::current_exception();
    }
    lock.lock();
    if (problem) fail(problem);
    lane.step = step;
    lane.state = State::kMade;
    changed_.notify_all();
    return true;
  }
  return false;
}

void LaneQueue::serve(std::size_t worker, const Work& work, const GiveOut& give_out) {
  std::unique_lock lock(mutex_);
  while (!stopping_ && !order_.empty()) {
    if (give_out_next(lock, give_out) || work_on_next(lock, worker, work)) continue;
    changed_.wait(lock);
  }
  --serving_;
  changed_.notify_all();
}

void LaneQueue::run(std::size_t lanes, const Work& work, const GiveOut& give_out,
                    const OnTick& on_tick) {
  std::unique_lock lock(mutex_);
  lanes_.assign(lanes, {});
  for (std::size_t lane = 0; lane < lanes; ++lane) order_.emplace(INT64_MIN, lane);
  serving_ = workers_;
  for (std::size_t worker = 0; worker < workers_; ++worker) {
    pool_.submit([this, worker, &work, &give_out] { serve(worker, work, give_out); });
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
