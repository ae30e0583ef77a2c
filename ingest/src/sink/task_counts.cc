// SPDX-License-Identifier: Apache-2.0
// How many rows of an event each task has.
#include "sink/task_counts.h"

#include <utility>

#include "base/utf8.h"
#include "sink/event_table.h"

namespace wbscope {
namespace {

// A hostile trace can have as many tasks as records.
constexpr std::size_t kMaxTasks = 1u << 18;

constexpr const char* kColumns =
    "(event TEXT, tid INTEGER, loaded_count INTEGER, first_seq INTEGER, last_seq INTEGER, "
    "PRIMARY KEY (event, tid)) WITHOUT ROWID";

}  // namespace

TaskCounts::TaskCounts(Database& db, bool is_staged)
    : table_(db, "event_task", kColumns, is_staged),
      insert_(db,
              "INSERT INTO event_task VALUES (?, ?, ?, ?, ?) ON CONFLICT (event, tid) DO UPDATE "
              "SET loaded_count = loaded_count + excluded.loaded_count, "
              "last_seq = excluded.last_seq") {}

std::uint32_t TaskCounts::add(std::string event) {
  events_.push_back(replace_invalid_utf8(event));
  return static_cast<std::uint32_t>(events_.size() - 1);
}

void TaskCounts::count(std::uint32_t event, std::int32_t tid, std::int64_t seq) {
  if (tid == EventLead::kNoTid) return;
  const std::uint64_t key = std::uint64_t{event} << 32 | static_cast<std::uint32_t>(tid);
  const auto [place, is_new] = rows_.try_emplace(key, Rows{.count = 1, .first_seq = seq,
                                                           .last_seq = seq});
  if (!is_new) {
    ++place->second.count;
    place->second.last_seq = seq;
  } else if (rows_.size() > kMaxTasks) {
    flush();
  }
}

void TaskCounts::flush() {
  for (const auto& [key, rows] : rows_) {
    insert_.bind_text(1, events_[key >> 32]);
    insert_.bind(2, std::int64_t{static_cast<std::int32_t>(key & UINT32_MAX)});
    insert_.bind(3, rows.count);
    insert_.bind(4, rows.first_seq);
    insert_.bind(5, rows.last_seq);
    insert_.run();
  }
  rows_.clear();
}

void TaskCounts::publish() {
  flush();
  table_.publish();
}

}  // namespace wbscope
