// SPDX-License-Identifier: Apache-2.0
// SqlGuard: what SQL may take, and when it has to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

struct sqlite3;

namespace wbscope {

struct SqlLimits {
  double seconds = 600;                        // 0: none
  std::uint64_t temp_bytes = 4ull << 30;       // of temporary files; 0: none
  std::int64_t memory_bytes = 512ll << 20;

  // $WBSCOPE_TIMEOUT in seconds and $WBSCOPE_TEMP_LIMIT in bytes, where they are
  // set. Raises: Error (exit 2) when one is no such number.
  static SqlLimits from_environment();
};

// Hears from SQLite every few thousand steps of a statement, and stops it when
// a signal has come or a limit is reached. It outlives what the database runs.
class SqlGuard {
 public:
  // Signals only.
  explicit SqlGuard(sqlite3* db);
  SqlGuard(const SqlGuard&) = delete;
  SqlGuard& operator=(const SqlGuard&) = delete;

  // From now on. Raises: Error.
  void limit(const SqlLimits& limits);

  // What runs now or later comes to its end; any thread may say so.
  void stop() noexcept { is_stopped_ = true; }

  // Says why a statement of the database of this name was stopped; returns when
  // it was not by the guard.
  void throw_if_stopped(const std::string& name) const;

 private:
  enum class Reason : std::uint8_t { kNone, kTime, kTemp };
  static int on_progress(void* guard) noexcept;
  [[nodiscard]] bool has_to_stop() noexcept;

  sqlite3* db_;
  SqlLimits limits_;
  bool is_limited_ = false;
  std::atomic<bool> is_stopped_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point next_look_;
  Reason reason_ = Reason::kNone;
};

}  // namespace wbscope
