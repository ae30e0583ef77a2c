// SPDX-License-Identifier: Apache-2.0
// The table time_index: when every so many records were. Records are in the
// order of time, so a query finds those of a stretch of time by it without an
// index over each of them.
#pragma once

#include <cstdint>

#include "sink/database.h"

namespace wbscope {

class TimeIndex {
 public:
  // Makes the table where there is none.
  explicit TimeIndex(Database& db);

  void note(std::int64_t seq, std::int64_t ts) {
    if (seq % kEvery == 0) [[unlikely]] insert(seq, ts);
  }

 private:
  static constexpr std::int64_t kEvery = 1024;

  void insert(std::int64_t seq, std::int64_t ts);

  Statement insert_;
};

}  // namespace wbscope
