// SPDX-License-Identifier: Apache-2.0
// Database and Statement: SQLite with errors instead of return codes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/write_budget.h"
#include "sink/sql_guard.h"

struct sqlite3;
struct sqlite3_stmt;

namespace wbscope {

class Database;

// One prepared statement. Bound text is not copied: it must live until run()
// or step() has returned.
class Statement {
 public:
  Statement(Database& db, const std::string& sql);

  void bind(int index, std::int64_t value) noexcept;
  void bind(int index, double value) noexcept;
  void bind_text(int index, std::string_view text) noexcept;
  void bind_blob(int index, const void* data, std::size_t bytes) noexcept;
  void bind_null(int index) noexcept;

  // Runs a statement that returns no row, and makes it ready for the next.
  void run();
  // The next row of a query; false at its end.
  [[nodiscard]] bool step();

  [[nodiscard]] int columns() const noexcept;
  [[nodiscard]] std::string_view column_name(int index) const noexcept;
  [[nodiscard]] bool is_null(int index) const noexcept;
  [[nodiscard]] bool is_integer(int index) const noexcept;
  [[nodiscard]] bool is_real(int index) const noexcept;
  [[nodiscard]] std::int64_t integer(int index) const noexcept;
  [[nodiscard]] double real(int index) const noexcept;
  [[nodiscard]] std::string_view text(int index) const noexcept;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const noexcept;
  };
  Database& db_;
  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
};

class Database {
 public:
  enum class Mode : std::uint8_t { kReadOnly, kCreate };

  // name is what error messages call it.
  // A file that is read may be a stranger's: of what it holds only plain tables
  // are read, its views, triggers and virtual tables are never run.
  // Raises: Error, exit 3 for reading, exit 5 for writing.
  Database(const std::string& path, std::string name, Mode mode);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void exec(const std::string& sql);
  // Of all SQL from now on. Raises: Error.
  void limit(const SqlLimits& limits) { guard_->limit(limits); }
  // How long the file may get, from now on. The budget outlives this.
  void limit_size(WriteBudget& budget);
  // So many bytes of input more allow a longer file.
  void note_read(std::uint64_t bytes);
  // Ends what runs, from another thread: it raises an Error there.
  void stop() noexcept { guard_->stop(); }
  void close();

  [[noreturn]] void fail() const;
  [[nodiscard]] sqlite3* handle() const noexcept { return db_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept;
  };
  std::string name_;
  Mode mode_;
  void trust_tables_only();
  [[nodiscard]] bool is_at_limit() const noexcept;
  static int authorize(void* virtual_tables, int action, const char* name, const char* column,
                       const char* schema, const char* from) noexcept;

  std::set<std::string, std::less<>> virtual_tables_;  // of a file that is read
  WriteBudget* budget_ = nullptr;
  std::unique_ptr<SqlGuard> guard_;  // outlives what calls it
  std::unique_ptr<sqlite3, Close> db_;
};

// Opens the one transaction of a new file. The file is thrown away whole on any
// failure, so it needs no journal.
void begin_new_file(Database& db);

// "name" with quotes, as an identifier in SQL.
[[nodiscard]] std::string quoted(std::string_view name);

}  // namespace wbscope
