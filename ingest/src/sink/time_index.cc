// SPDX-License-Identifier: Apache-2.0
// When every so many records were.
#include "sink/time_index.h"

namespace wbscope {
namespace {

Database& with_table(Database& db) {
  db.exec(
      "CREATE TABLE IF NOT EXISTS time_index (ts INTEGER, seq INTEGER, PRIMARY KEY (ts, seq)) "
      "WITHOUT ROWID");
  return db;
}

}  // namespace

// A source that numbers records itself may give one number twice.
TimeIndex::TimeIndex(Database& db)
    : insert_(with_table(db), "INSERT OR IGNORE INTO time_index VALUES (?, ?)") {}

void TimeIndex::insert(std::int64_t seq, std::int64_t ts) {
  insert_.bind(1, ts);
  insert_.bind(2, seq);
  insert_.run();
}

}  // namespace wbscope
