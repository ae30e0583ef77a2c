// SPDX-License-Identifier: Apache-2.0
// When every so many records were.
#include "sink/time_index.h"

namespace wbscope {
namespace {

constexpr const char* kColumns = "(ts INTEGER, seq INTEGER, PRIMARY KEY (ts, seq)) WITHOUT ROWID";

}  // namespace

// A source that numbers records itself may give one number twice.
TimeIndex::TimeIndex(Database& db, bool is_staged)
    : table_(db, "time_index", kColumns, is_staged),
      insert_(db, "INSERT OR IGNORE INTO time_index VALUES (?, ?)") {}

void TimeIndex::publish() { table_.publish(); }

void TimeIndex::insert(std::int64_t seq, std::int64_t ts) {
  insert_.bind(1, ts);
  insert_.bind(2, seq);
  insert_.run();
}

}  // namespace wbscope
