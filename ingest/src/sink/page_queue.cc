// SPDX-License-Identifier: Apache-2.0
// Rows of many tables become pages by several threads.
#include "sink/page_queue.h"

#include <utility>

namespace wbscope {
namespace {

constexpr std::size_t kMostBytes = 8u << 20;
constexpr std::size_t kMostSpare = 16;
constexpr std::size_t kMostSpareBytes = 2u << 20;  // each

}  // namespace

std::size_t PageQueue::add_table(TablePages& table) {
  const std::lock_guard lock(mutex_);
  tables_.push_back({.pages = &table, .waiting = {}});
  return tables_.size() - 1;
}

void PageQueue::add(std::size_t table, std::size_t bytes, Batch batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || in_work_ == 0 || bytes_ + bytes <= kMostBytes; });
  if (failure_) std::rethrow_exception(failure_);
  tables_[table].waiting.push_back({.turn = turns_++,
                                    .table = table,
                                    .bytes = bytes,
                                    .batch = std::move(batch),
                                    .is_whole = false,
                                    .made = {},
                                    .run = {}});
  ++in_work_;
  bytes_ += bytes;
  if (!tables_[table].is_held) start_next(table);
}

void PageQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_ || in_work_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void PageQueue::start_next(std::size_t table) {
  tables_[table].is_held = !tables_[table].waiting.empty();
  if (tables_[table].is_held) pool_.submit([this, table] { serve(table); });
}

void PageQueue::serve(std::size_t table) noexcept {
  std::unique_lock lock(mutex_);
  if (failure_) return;
  Job job = std::move(tables_[table].waiting.front());
  tables_[table].waiting.pop_front();
  if (!job.made && !spare_.empty()) {
    job.made = std::move(spare_.back());
    spare_.pop_back();
  }
  lock.unlock();
  try {
    work_on(std::move(job));
  } catch (...) {  // carried to the thread that adds batches
    lock.lock();
    if (!failure_) failure_ = std::current_exception();
    changed_.notify_all();
  }
}

void PageQueue::work_on(Job job) {
  if (!job.made) job.made = std::make_unique<MadePages>();
  job.is_whole = job.batch(*job.made);
  if (job.is_whole) job.batch = {};
  std::vector<Job> numbered;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = job.is_whole ? std::exchange(job.bytes, 0) : 0;
    job.bytes += job.made->bytes.size();
    bytes_ += job.made->bytes.size() - before;
    if (job.is_whole && !job.made->is_waited_for) start_next(job.table);
    const auto turn = job.turn;
    made_.emplace(turn, std::move(job));
    numbered = give_numbers();
  }
  for (Job& each : numbered) {
    file_.write(each.run, each.made->bytes);
  }
  const std::lock_guard lock(mutex_);
  for (Job& each : numbered) {
    if (!each.is_whole) {
      go_on(std::move(each));
      continue;
    }
    bytes_ -= each.bytes;
    --in_work_;
    each.made->clear();
    const bool is_kept = spare_.size() < kMostSpare && each.made->bytes.capacity() <= kMostSpareBytes;
    if (is_kept) spare_.push_back(std::move(each.made));
  }
  if (!numbered.empty()) changed_.notify_all();
}

// It has the turn: the others wait until its batch is at its end.
void PageQueue::go_on(Job job) {
  const std::size_t bytes = job.made->bytes.size();
  job.bytes -= bytes;
  bytes_ -= bytes;
  job.made->clear();
  const std::size_t table = job.table;
  tables_[table].waiting.push_front(std::move(job));
  pool_.submit([this, table] { serve(table); });
}

std::vector<PageQueue::Job> PageQueue::give_numbers() {
  std::vector<Job> numbered;
  bool is_whole = true;
  for (auto first = made_.begin();
       is_whole && first != made_.end() && first->first == next_turn_;
       first = made_.erase(first)) {
    Job& job = first->second;
    is_whole = job.is_whole;
    if (is_whole) ++next_turn_;
    job.run = file_.allocate(job.made->bytes.size() / file_.page_size().bytes);
    tables_[job.table].pages->number(*job.made, job.run);
    if (on_numbered_) on_numbered_(*job.made);
    if (is_whole && job.made->is_waited_for) start_next(job.table);
    numbered.push_back(std::move(job));
  }
  return numbered;
}

}  // namespace wbscope
