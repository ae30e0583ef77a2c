// SPDX-License-Identifier: Apache-2.0
// The table time_index: when every so many records were. Records are in the
// order of time, so a query finds those of a stretch of time by it without an
// index over each of them.
#pragma once

#include <cstdint>

#include "sink/staged_table.h"

namespace wbscope {

class TimeIndex {
 public:
  // Makes the table where there is none. is_staged: nothing is written to the file
  // before publish().
  explicit TimeIndex(Database& db, bool is_staged = false);

  void note(std::int64_t seq, std::int64_t ts) {
    if (seq % kEvery == 0) [[unlikely]] insert(seq, ts);
  }

  // Puts what is staged into the file.
  void publish();

 private:
  static constexpr std::int64_t kEvery = 1024;

  void insert(std::int64_t seq, std::int64_t ts);

  StagedTable table_;
  Statement insert_;
};

}  // namespace wbscope
