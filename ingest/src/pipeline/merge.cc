// SPDX-License-Identifier: Apache-2.0
// Reads all CPUs in parallel and gives their records in order of time.
#include "pipeline/merge.h"

#include <algorithm>
#include <chrono>

namespace wbscope {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

struct Head {
  std::int64_t ts;
  std::size_t lane;
  // std heaps keep the largest in front, so later is smaller.
  friend bool operator<(const Head& a, const Head& b) {
    return a.ts != b.ts ? a.ts > b.ts : a.lane > b.lane;
  }
};

}  // namespace

Merger::Merger(std::vector<std::unique_ptr<CpuStream>> streams, WorkerPool& pool)
    : streams_(std::move(streams)), pool_(pool) {
  for (std::size_t i = 0; i < streams_.size(); ++i) lanes_.push_back(std::make_unique<Lane>());
}

void Merger::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.wait(lock, [this] { return under_way_ == 0; });
}

// Called with the mutex held.
void Merger::start_fill(std::size_t index, int block) {
  Lane& lane = *lanes_[index];
  if (lane.filling || lane.ended || lane.full[block]) return;
  lane.filling = true;
  ++under_way_;
  pool_.submit([this, index, block] {
    Lane& mine = *lanes_[index];
    bool more = false;
    std::exception_ptr problem;
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
    }
    if (!stopping) {
      try {
        mine.blocks[block].clear();
        more = streams_[index]->fill(mine.blocks[block]);
      } catch (...) {  // carried to run(), which rethrows it
        problem = std::current_exception();
      }
    }
    const std::lock_guard lock(mutex_);
    mine.filling = false;
    mine.consumed = streams_[index]->consumed();
    if (!more) mine.ended = true;
    if (problem && !failure_) failure_ = problem;
    --under_way_;
    // An empty block is filled again at once: a CPU with nothing to load must
    // not wait until the merge has seen that there is nothing.
    mine.full[block] = !mine.blocks[block].refs.empty() || !more;
    if (!stopping_ && more) start_fill(index, mine.full[block] ? 1 - block : block);
    changed_.notify_all();
  });
}

bool Merger::advance(std::size_t index, const OnTick& on_tick) {
  Lane& lane = *lanes_[index];
  std::unique_lock lock(mutex_);
  while (true) {
    if (failure_) std::rethrow_exception(failure_);  // else it looks like the lane's end
    if (lane.full[lane.reading]) {
      if (lane.next < lane.blocks[lane.reading].refs.size()) return true;
      lane.full[lane.reading] = false;
      lane.next = 0;
      start_fill(index, lane.reading);
      lane.reading = 1 - lane.reading;
      continue;
    }
    if (lane.ended && !lane.full[0] && !lane.full[1]) return false;
    if (!lane.filling) start_fill(index, lane.reading);
    while (!lane.full[lane.reading] && lane.filling && !failure_) {
      if (changed_.wait_for(lock, kTick) == std::cv_status::timeout) {
        lock.unlock();
        on_tick();
        lock.lock();
      }
    }
  }
}

std::uint64_t Merger::consumed() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->consumed;
  return sum;
}

bool Merger::run(const OnRecord& on_record, const OnTick& on_tick) {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < lanes_.size(); ++i) start_fill(i, 0);
  }
  std::vector<Head> heap;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (advance(i, on_tick)) heap.push_back({lanes_[i]->blocks[lanes_[i]->reading].refs[0].ts, i});
  }
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Head head = heap.back();
    heap.pop_back();
    Lane& lane = *lanes_[head.lane];
    const CpuStream& stream = *streams_[head.lane];
    // Run on in this block for as long as no other lane comes first.
    const RecordBlock& block = lane.blocks[lane.reading];
    const std::size_t end = block.refs.size();
    do {
      const RecordRef& ref = block.refs[lane.next++];
      if (!on_record(stream, ref, block)) return false;
    } while (lane.next < end &&
             (heap.empty() || !(Head{block.refs[lane.next].ts, head.lane} < heap.front())));
    if (lane.next == end) on_tick();
    if (advance(head.lane, on_tick)) {
      heap.push_back({lane.blocks[lane.reading].refs[lane.next].ts, head.lane});
      std::push_heap(heap.begin(), heap.end());
    }
  }
  return true;
}

}  // namespace wbscope
