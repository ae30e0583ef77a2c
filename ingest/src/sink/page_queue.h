// SPDX-License-Identifier: Apache-2.0
// PageQueue: rows of many tables become pages by several threads, and the file
// is the same whatever their number.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "pipeline/worker_pool.h"
#include "sink/page_file.h"
#include "sink/table_pages.h"

namespace wbscope {

// One thread gives it batches of rows; a table's batches are worked on in their
// order, one at a time. Pages get their numbers in the order of the batches.
class PageQueue {
 public:
  // Adds a batch's rows to its table: all of them, or some that take much room, in
  // which case it returns false and is called again when these are written.
  using Batch = std::function<bool(MadePages& made)>;
  // Told of pages that get their numbers, in the order of these, by one thread at a time.
  using OnNumbered = std::function<void(MadePages& made)>;

  PageQueue(PageFile& file, unsigned threads, OnNumbered on_numbered = {})
      : file_(file), on_numbered_(std::move(on_numbered)), pool_(threads) {}
  // Drops batches that nobody has begun to work on.
  ~PageQueue() = default;
  PageQueue(const PageQueue&) = delete;
  PageQueue& operator=(const PageQueue&) = delete;

  // The number of a new table. Pre: drain() is behind the last add() when it goes.
  [[nodiscard]] std::size_t add_table(TablePages& table);
  // bytes: of memory that the batch takes; waits while too much is in work.
  // Raises: what a batch or a write raised.
  void add(std::size_t table, std::size_t bytes, Batch batch);
  // Until all is written. Raises: the same.
  void drain();

 private:
  struct Job {
    std::uint64_t turn = 0;  // of all batches
    std::size_t table = 0;
    std::size_t bytes = 0;  // of the batch, and of what is made of it
    Batch batch;
    bool is_whole = false;  // no rows are left in the batch
    std::unique_ptr<MadePages> made;
    PageRun run;
  };
  struct Table {
    TablePages* pages;
    std::deque<Job> waiting;
    bool is_held = false;  // a batch is in work, or waits for its pages' numbers
  };

  void serve(std::size_t table) noexcept;
  void work_on(Job job);
  void go_on(Job job);
  // With the mutex held.
  void start_next(std::size_t table);
  [[nodiscard]] std::vector<Job> give_numbers();

  PageFile& file_;
  OnNumbered on_numbered_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Table> tables_;
  std::map<std::uint64_t, Job> made_;  // by turn; those before are not made yet
  std::vector<std::unique_ptr<MadePages>> spare_;
  std::uint64_t turns_ = 0;
  std::uint64_t next_turn_ = 0;  // to get numbers
  std::size_t in_work_ = 0;      // batches
  std::size_t bytes_ = 0;        // of them and of their pages
  std::exception_ptr failure_;
  WorkerPool pool_;  // ends first
};

}  // namespace wbscope
