// SPDX-License-Identifier: Apache-2.0
// What SQL may take, and when it has to stop.
#include "sink/sql_guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/interrupt.h"
#include "sink/sql_memory.h"

namespace wbscope {
namespace {

constexpr int kStepsBetween = 10'000;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
constexpr const char* kTimeout = "WBSCOPE_TIMEOUT";
constexpr const char* kTempLimit = "WBSCOPE_TEMP_LIMIT";
constexpr const char* kPart = "wbscope ingest SRC -o PART.db --time-range 0s..60s";

template <typename T>
T number_of(const char* variable, T standard, const char* wanted) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return standard;
  const std::string_view all = text;
  T value = 0;
  const auto [end, problem] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (problem == std::errc() && end == all.data() + all.size() && value >= 0 &&
      std::isfinite(static_cast<double>(value))) {
    return value;
  }
  throw Error(Exit::kUsage, {.slug = "bad-limit",
                             .object = variable,
                             .text = "found \"" + std::string(all) + "\", wanted " + wanted,
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = std::string("unset ") + variable});
}

// SQLite unlinks its temporary files as soon as they are open, so that only
// their descriptors tell of them.
std::uint64_t temp_bytes() noexcept {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::uint64_t sum = 0;
  while (const dirent* entry = ::readdir(folder)) {
    char target[512];
    const ssize_t bytes = ::readlinkat(::dirfd(folder), entry->d_name, target, sizeof(target));
    if (bytes <= 0) continue;
    const std::string_view path(target, static_cast<std::size_t>(bytes));
    if (path.find("/etilqs_") == std::string_view::npos) continue;
    struct stat info {};
    if (::fstatat(::dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode)) {
      sum += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
  }
  ::closedir(folder);
  return sum;
}

[[noreturn]] void throw_limit(const char* slug, const std::string& name, const std::string& text,
                              const std::string& fix) {
  throw Error(Exit::kInput, {.slug = slug,
                             .object = name,
                             .text = text,
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = fix});
}

std::string with_variable(const char* variable, const std::string& value) {
  return std::string("look at a part: ") + kPart + "; or allow more: " + variable + "=" + value;
}

}  // namespace

SqlLimits SqlLimits::from_environment() {
  SqlLimits limits;
  limits.seconds = number_of(kTimeout, limits.seconds, "seconds, 0 for no limit");
  limits.temp_bytes = number_of(kTempLimit, limits.temp_bytes, "bytes, 0 for no limit");
  return limits;
}

SqlGuard::SqlGuard(sqlite3* db) : db_(db) {
  sqlite3_progress_handler(db_, kStepsBetween, on_progress, this);
}

void SqlGuard::limit(const SqlLimits& limits) {
  limits_ = limits;
  is_limited_ = true;
  begin_ = next_look_ = std::chrono::steady_clock::now();
  limit_sql_memory(limits.memory_bytes);
  if (limits.temp_bytes == 0) return;
  constexpr std::uint64_t kTempPage = 4096;
  const std::string most = std::to_string(
      std::clamp<std::uint64_t>(limits.temp_bytes / kTempPage, 1, UINT32_MAX - 1));
  sqlite3_exec(db_, ("PRAGMA temp.max_page_count=" + most).c_str(), nullptr, nullptr, nullptr);
}

int SqlGuard::on_progress(void* guard) noexcept {
  return static_cast<SqlGuard*>(guard)->has_to_stop() ? 1 : 0;
}

bool SqlGuard::has_to_stop() noexcept {
  if (is_interrupted() || is_stopped_) return true;
  if (!is_limited_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kBetweenLooks;
  const std::chrono::duration<double> passed = now - begin_;
  if (limits_.seconds > 0 && passed.count() > limits_.seconds) {
    reason_ = Reason::kTime;
  } else if (limits_.temp_bytes > 0 && temp_bytes() > limits_.temp_bytes) {
    reason_ = Reason::kTemp;
  }
  return reason_ != Reason::kNone;
}

void SqlGuard::throw_if_stopped(const std::string& name) const {
  throw_if_interrupted();
  if (!is_limited_) return;
  const int code = sqlite3_errcode(db_);
  if (reason_ == Reason::kTime) {
    char seconds[32];
    const auto end = std::to_chars(seconds, seconds + sizeof(seconds), limits_.seconds).ptr;
    throw_limit("time-limit", name,
                "took more than " + std::string(seconds, end) + " s of SQL",
                with_variable(kTimeout, "SECONDS"));
  }
  if (reason_ == Reason::kTemp || (code == SQLITE_FULL && limits_.temp_bytes > 0)) {
    throw_limit("temp-limit", name,
                "took more than " + std::to_string(limits_.temp_bytes) +
                    " bytes of temporary files",
                with_variable(kTempLimit, "BYTES"));
  }
  if (code == SQLITE_NOMEM) {
    throw_limit("memory-limit", name,
                "took more than " + std::to_string(limits_.memory_bytes) + " bytes of memory",
                std::string("look at a part: ") + kPart);
  }
}

}  // namespace wbscope
