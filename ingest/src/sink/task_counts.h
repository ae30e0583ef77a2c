// SPDX-License-Identifier: Apache-2.0
// The table event_task: how many rows of an event each task has, and its first
// and last. A query finds them here without a look at millions of rows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sink/staged_table.h"

namespace wbscope {

class TaskCounts {
 public:
  static constexpr std::uint32_t kNotCounted = UINT32_MAX;

  // Makes the table where there is none. is_staged: nothing is written to the file
  // before publish().
  explicit TaskCounts(Database& db, bool is_staged = false);

  // An event whose rows are counted from now on: its full name.
  [[nodiscard]] std::uint32_t add(std::string event);

  // A row of it, in the order of seq.
  void note(std::uint32_t event, std::int32_t tid, std::int64_t seq) {
    if (event != kNotCounted) count(event, tid, seq);
  }

  // Writes what has been counted.
  void flush();
  // Puts what is staged into the file.
  void publish();

 private:
  struct Rows {
    std::int64_t count = 0;
    std::int64_t first_seq = 0;
    std::int64_t last_seq = 0;
  };

  void count(std::uint32_t event, std::int32_t tid, std::int64_t seq);

  StagedTable table_;
  Statement insert_;
  std::vector<std::string> events_;
  std::unordered_map<std::uint64_t, Rows> rows_;  // by event and task
};

}  // namespace wbscope
