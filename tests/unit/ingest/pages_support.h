// SPDX-License-Identifier: Apache-2.0
// Rows that are written into pages here and inserted by SQLite beside them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "sink/database.h"
#include "sink/page_file.h"
#include "sink/sqlite_record.h"
#include "sink/table_pages.h"
#include "support.h"

namespace wbscope::testing {

using PageValue = std::variant<std::monostate, std::int64_t, double, std::string, Bytes>;

struct PageRow {
  std::int64_t number;
  std::vector<PageValue> values;
};

template <typename... Ts>
struct Each : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Each(Ts...) -> Each<Ts...>;

inline void encode(const PageRow& row, RecordEncoder& record) {
  record.begin_row();
  for (const auto& value : row.values) {
    std::visit(Each{[&](std::monostate) { record.null(); },
                    [&](std::int64_t number) { record.integer(number); },
                    [&](double number) { record.real(number); },
                    [&](const std::string& text) { record.text(text); },
                    [&](const Bytes& bytes) { record.blob(bytes.span()); }},
               value);
  }
  record.null();  // the primary key
}

// A database with tables t0, t1 ... that are empty, and committed.
class PagesDatabase {
 public:
  PagesDatabase(const std::string& path, std::size_t columns, std::size_t page_bytes = 8192,
                std::size_t tables = 1)
      : db_(path, "test.db", Database::Mode::kCreate), columns_(columns) {
    db_.exec("PRAGMA page_size=" + std::to_string(page_bytes) + "; PRAGMA journal_mode=OFF; BEGIN");
    for (std::size_t i = 0; i < tables; ++i) create("t" + std::to_string(i));
    db_.exec("COMMIT");
  }

  [[nodiscard]] Database& db() { return db_; }
  [[nodiscard]] std::uint32_t root(const std::string& table) {
    return static_cast<std::uint32_t>(
        number("SELECT rootpage FROM sqlite_schema WHERE name = '" + table + "'"));
  }
  [[nodiscard]] std::int64_t number(const std::string& sql) {
    Statement rows(db_, sql);
    return rows.step() ? rows.integer(0) : -1;
  }
  [[nodiscard]] std::string text(const std::string& sql) {
    Statement rows(db_, sql);
    return rows.step() ? std::string(rows.text(0)) : "no row";
  }

  // That table holds these rows and SQLite finds no fault with the file: what it
  // would have stored itself, in a second table, is equal, types and all.
  void expect(const std::string& table, const std::vector<PageRow>& rows) {
    EXPECT_EQ(text("PRAGMA integrity_check"), "ok");
    db_.exec("BEGIN");
    create("twin");
    insert("twin", rows);
    Statement ours(db_, "SELECT * FROM " + table);
    Statement theirs(db_, "SELECT * FROM twin");
    for (std::size_t row = 0; row < rows.size(); ++row) {
      ASSERT_TRUE(ours.step()) << row;
      ASSERT_TRUE(theirs.step());
      for (int column = 0; column <= static_cast<int>(columns_); ++column) {
        ASSERT_EQ(ours.is_null(column), theirs.is_null(column)) << row << " " << column;
        ASSERT_EQ(ours.is_integer(column), theirs.is_integer(column)) << row << " " << column;
        ASSERT_EQ(ours.is_real(column), theirs.is_real(column)) << row << " " << column;
        ASSERT_EQ(ours.integer(column), theirs.integer(column)) << row << " " << column;
        ASSERT_EQ(ours.text(column), theirs.text(column)) << row << " " << column;
      }
      // From the root down, not along the leaves.
      ASSERT_EQ(number("SELECT count(*) FROM " + table + " WHERE seq = " +
                       std::to_string(rows[row].number)),
                1);
    }
    EXPECT_FALSE(ours.step());
    db_.exec("ROLLBACK");
  }

  void insert(const std::string& table, const std::vector<PageRow>& rows) {
    std::string sql = "INSERT INTO " + table + " VALUES (?";
    for (std::size_t i = 0; i < columns_; ++i) sql += ",?";
    Statement insert(db_, sql + ")");
    for (const auto& row : rows) {
      int index = 0;
      for (const auto& value : row.values) {
        ++index;
        std::visit(Each{[&](std::monostate) { insert.bind_null(index); },
                        [&](std::int64_t number) { insert.bind(index, number); },
                        [&](double number) { insert.bind(index, number); },
                        [&](const std::string& text) { insert.bind_text(index, text); },
                        [&](const Bytes& bytes) {
                          insert.bind_blob(index, bytes.str().data(), bytes.size());
                        }},
                   value);
      }
      insert.bind(index + 1, row.number);
      insert.run();
    }
  }

 private:
  void create(const std::string& table) {
    std::string sql = "CREATE TABLE " + table + " (";
    for (std::size_t i = 0; i < columns_; ++i) sql += "c" + std::to_string(i) + ", ";
    db_.exec(sql + "seq INTEGER PRIMARY KEY)");
  }

  Database db_;
  std::size_t columns_;
};

// The rows into table t0, in batches of so many.
inline void write_pages(PageFile& file, std::uint32_t root, const std::vector<PageRow>& rows,
                        std::size_t batch = SIZE_MAX) {
  TablePages pages(file.page_size());
  RecordEncoder record;
  MadePages made;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    encode(rows[i], record);
    pages.add(rows[i].number, record, made);
    if ((i + 1) % batch != 0 && i + 1 < rows.size()) continue;
    const PageRun run = file.allocate(made.bytes.size() / file.page_size().bytes);
    pages.number(made, run);
    file.write(run, made.bytes);
    made.clear();
  }
  pages.finish(root, file);
  file.finish();
}

}  // namespace wbscope::testing
