// SPDX-License-Identifier: Apache-2.0
// SQLite with errors instead of return codes.
#include "sink/database.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "base/error.h"
#include "sink/sql_memory.h"
#include "sink/temp_files.h"

namespace wbscope {

constexpr int kMostValueBytes = 1 << 20;
constexpr std::uint64_t kPageBytes = 8192;  // of a new file
constexpr std::uint64_t kMostPages = 0x3ffffffe;
constexpr std::uint64_t kCacheKib = 16384;

void Statement::Finalize::operator()(sqlite3_stmt* stmt) const noexcept { sqlite3_finalize(stmt); }
void Database::Close::operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }

Statement::Statement(Database& db, const std::string& sql) : db_(db) {
  sqlite3_stmt* stmt = nullptr;
  if (sqlite3_prepare_v3(db.handle(), sql.c_str(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &stmt, nullptr) != SQLITE_OK) {
    db.fail();
  }
  stmt_.reset(stmt);
}

void Statement::bind(int index, std::int64_t value) noexcept {
  sqlite3_bind_int64(stmt_.get(), index, value);
}
void Statement::bind(int index, double value) noexcept {
  sqlite3_bind_double(stmt_.get(), index, value);
}
void Statement::bind_text(int index, std::string_view text) noexcept {
  sqlite3_bind_text(stmt_.get(), index, text.data() == nullptr ? "" : text.data(),
                    static_cast<int>(text.size()), SQLITE_STATIC);
}
void Statement::bind_blob(int index, const void* data, std::size_t bytes) noexcept {
  sqlite3_bind_blob64(stmt_.get(), index, data == nullptr ? "" : data, bytes, SQLITE_STATIC);
}
void Statement::bind_null(int index) noexcept { sqlite3_bind_null(stmt_.get(), index); }

void Statement::run() {
  const int rc = sqlite3_step(stmt_.get());
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) db_.fail();
  sqlite3_reset(stmt_.get());
}

bool Statement::step() {
  const int rc = sqlite3_step(stmt_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) db_.fail();
  sqlite3_reset(stmt_.get());
  return false;
}

int Statement::columns() const noexcept { return sqlite3_column_count(stmt_.get()); }
std::string_view Statement::column_name(int index) const noexcept {
  return sqlite3_column_name(stmt_.get(), index);
}
bool Statement::is_null(int index) const noexcept {
  return sqlite3_column_type(stmt_.get(), index) == SQLITE_NULL;
}
bool Statement::is_integer(int index) const noexcept {
  return sqlite3_column_type(stmt_.get(), index) == SQLITE_INTEGER;
}
bool Statement::is_real(int index) const noexcept {
  return sqlite3_column_type(stmt_.get(), index) == SQLITE_FLOAT;
}
std::int64_t Statement::integer(int index) const noexcept {
  return sqlite3_column_int64(stmt_.get(), index);
}
double Statement::real(int index) const noexcept {
  return sqlite3_column_double(stmt_.get(), index);
}
std::string_view Statement::text(int index) const noexcept {
  const unsigned char* text = sqlite3_column_text(stmt_.get(), index);
  if (text == nullptr) return {};
  return {as_chars(text), static_cast<std::size_t>(sqlite3_column_bytes(stmt_.get(), index))};
}

Database::Database(const std::string& path, std::string name, Mode mode)
    : name_(std::move(name)), mode_(mode) {
  count_sql_memory();
  watch_temp_files();
  sqlite3* db = nullptr;
  const int flags = mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY
                                            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // A new file is nobody else's; locks of SQLite's own would stand in the way
  // of OutputFile's where a network file system has but one kind of lock.
  const char* const vfs = mode == Mode::kReadOnly ? nullptr : "unix-none";
  const int rc = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, vfs);
  db_.reset(db);
  if (rc != SQLITE_OK) fail();
  guard_ = std::make_unique<SqlGuard>(db);
  if (mode == Mode::kReadOnly) {
    trust_tables_only();
    // Of temporary tables the page size; sorts of some hundred thousand rows stay in memory.
    exec("PRAGMA page_size=8192; PRAGMA main.cache_size=-16384; PRAGMA temp.cache_size=-49152");
  }
}

void Database::trust_tables_only() {
  for (const int option : {SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER}) {
    sqlite3_db_config(db_.get(), option, 0, nullptr);  // of the file; TEMP views are ours
  }
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  exec("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON");
  // A record has no longer text; a few megabytes in each row would fill the disk.
  sqlite3_limit(db_.get(), SQLITE_LIMIT_LENGTH, kMostValueBytes);
  Statement rows(*this,
                 "SELECT lower(name) FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0");
  while (rows.step()) virtual_tables_.emplace(rows.text(0));
  if (!virtual_tables_.empty()) sqlite3_set_authorizer(db_.get(), authorize, &virtual_tables_);
}

int Database::authorize(void* virtual_tables, int action, const char* name, const char*,
                        const char* schema, const char*) noexcept {
  if (action != SQLITE_READ || name == nullptr || schema == nullptr) return SQLITE_OK;
  if (std::string_view(schema) != "main") return SQLITE_OK;
  for (const auto& each : *static_cast<const decltype(virtual_tables_)*>(virtual_tables)) {
    if (sqlite3_stricmp(each.c_str(), name) == 0) return SQLITE_DENY;
  }
  return SQLITE_OK;
}

void Database::exec(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void Database::limit_size(WriteBudget& budget) {
  budget_ = &budget;
  note_read(0);
}

void Database::note_read(std::uint64_t bytes) {
  if (budget_ == nullptr) return;
  budget_->add_read(bytes);
  exec("PRAGMA main.max_page_count=" +
       std::to_string(std::min(budget_->most() / kPageBytes, kMostPages)));
}

// SQLite has the same error for a full disk. Of what it would write, as much as
// its cache holds is not in the file yet.
bool Database::is_at_limit() const noexcept {
  struct stat file {};
  if (budget_ == nullptr || sqlite3_extended_errcode(db_.get()) != SQLITE_FULL ||
      ::stat(sqlite3_db_filename(db_.get(), "main"), &file) != 0) {
    return false;
  }
  return static_cast<std::uint64_t>(file.st_size) + 2 * (kCacheKib << 10) >= budget_->most();
}

void Database::close() { db_.reset(); }

void Database::fail() const {
  const std::string problem = sqlite3_errmsg(db_.get());
  if (const auto temp = take_temp_problem(sqlite3_extended_errcode(db_.get()))) {
    const bool is_read = mode_ == Mode::kReadOnly;
    throw Error(Exit::kEnvironment,
                {.slug = "no-room",
                 .object = temp->folder,
                 .text = "SQLite cannot write its temporary files: " + temp->text,
                 .at = (is_read ? "reading " : "making ") + name_,
                 .have = temp->have,
                 .effect = "nothing was written",
                 .fix = "export SQLITE_TMPDIR=FOLDER    # one with room"});
  }
  if (is_at_limit()) budget_->refuse();
  if (guard_) guard_->throw_if_stopped(name_);
  if (mode_ == Mode::kReadOnly && problem.find("prohibited") != std::string::npos) {
    throw Error(Exit::kInput, {.slug = "not-a-table",
                               .object = name_,
                               .text = problem + ": found a view or a virtual table, wanted a "
                                                 "plain table",
                               .at = {},
                               .have = {},
                               .effect = "nothing was written",
                               .fix = "make it anew with: wbscope ingest SRC -o RUN.db"});
  }
  if (mode_ == Mode::kReadOnly) {
    throw Error(Exit::kInput, {.slug = "cannot-read-database",
                               .object = name_,
                               .text = problem,
                               .at = {},
                               .have = {},
                               .effect = {},
                               .fix = "make it anew with: wbscope ingest SRC -o RUN.db"});
  }
  throw Error(Exit::kEnvironment, {.slug = "cannot-write-database",
                                   .object = name_,
                                   .text = problem,
                                   .at = {},
                                   .have = {},
                                   .effect = "nothing was written under that name",
                                   .fix = "check the free space and permissions of its directory"});
}

void begin_new_file(Database& db) {
  db.exec("PRAGMA page_size=" + std::to_string(kPageBytes) +
          "; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
          "PRAGMA cache_size=-" + std::to_string(kCacheKib) + "; BEGIN");
}

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace wbscope
