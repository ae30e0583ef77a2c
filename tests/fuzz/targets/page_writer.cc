// SPDX-License-Identifier: Apache-2.0
// Rows of any shape into pages of two tables: SQLite finds the file whole and
// reads back every value.
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scratch.h"
#include "sink/database.h"
#include "sink/page_file.h"
#include "sink/sqlite_record.h"
#include "sink/table_pages.h"
#include "targets.h"

namespace wbscope::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTables = 2;
constexpr std::size_t kMostRows = 2000;
constexpr std::size_t kMostBytes = 1u << 18;  // of all rows, about
constexpr std::size_t kMostColumns = 1999;    // and the primary key
constexpr unsigned kLockByte = 0x40000000;

struct Cell {
  enum class Kind : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };
  Kind kind = Kind::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string bytes;
};

struct Row {
  std::int64_t number;
  std::vector<Cell> cells;
};

struct Choices {
  std::size_t page_bytes = 512;
  int reserved = 0;
  std::uint64_t lock_byte = kLockByte;
  std::size_t batch = SIZE_MAX;  // rows
  bool changes = false;          // SQLite deletes rows and adds some at the end
  std::array<std::size_t, kTables> columns{};
};

// SQLite leaves the page with this byte out; at 1 GiB where nothing else is said.
class LockByte {
 public:
  explicit LockByte(std::uint64_t byte) {
    sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, static_cast<unsigned>(byte));
  }
  ~LockByte() { sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, kLockByte); }
  LockByte(const LockByte&) = delete;
  LockByte& operator=(const LockByte&) = delete;
};

std::uint64_t take_number(Bytes& input, std::size_t bytes) {
  std::uint64_t value = 0;
  for (; bytes > 0; --bytes) value = value << 8 | take_byte(input);
  return value;
}

Choices take_choices(Bytes& input) {
  Choices choices;
  const std::uint8_t first = take_byte(input);
  choices.page_bytes = std::size_t{512} << (first & 7);
  if ((first & 8) != 0) choices.reserved = take_byte(input) % 33;  // usable: 480 at least
  if ((first & 16) != 0) {
    // Not in the 4 KiB that SQLite takes for the first page until it has read its size.
    const std::size_t least = std::max<std::size_t>(4, 4096 / choices.page_bytes);
    choices.lock_byte = (least + take_byte(input) % 60) * choices.page_bytes;
  }
  if ((first & 32) != 0) choices.batch = 1u + take_byte(input);
  choices.changes = (first & 64) != 0;
  for (auto& columns : choices.columns) {
    columns = 1u + take_byte(input) % 32;
    if (columns == 32) columns = 1 + take_number(input, 2) % kMostColumns;
  }
  return choices;
}

// As many bytes as asked for, at most 2 * 65535; no two pages of them are equal.
std::string take_bytes(Bytes& input, std::size_t bytes) {
  static const std::string all = [] {
    std::string made(3 * 65536, '\0');
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>(i * 7 + i / 251);
    return made;
  }();
  return all.substr(take_byte(input), bytes);
}

Cell take_cell(Bytes& input) {
  const std::uint8_t choice = take_byte(input);
  const unsigned more = choice >> 3;
  Cell cell;
  const auto integer = [&cell](std::uint64_t value) {
    cell.kind = Cell::Kind::kInteger;
    cell.integer = static_cast<std::int64_t>(value);
  };
  const auto bytes = [&cell](Cell::Kind kind, std::string value) {
    cell.kind = kind;
    cell.bytes = std::move(value);
  };
  switch (choice & 7) {
    case 0:
      break;
    case 1: {  // of 1 to 8 bytes, of either sign
      const unsigned width = more % 8 + 1;
      const std::uint64_t value = take_number(input, width) << (64 - 8 * width);
      integer(static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> (64 - 8 * width)));
      break;
    }
    case 2: {  // beside a power of two
      const std::uint8_t step = take_byte(input);
      const std::uint64_t power = std::uint64_t{1} << (2 * more + (step >> 7)) % 64;
      const std::uint64_t value = power + step % 4 - 2;
      integer((step & 64) != 0 ? 0 - value : value);
      break;
    }
    case 3:
      cell.kind = Cell::Kind::kReal;
      cell.real = std::bit_cast<double>(take_number(input, 8));
      break;
    case 4:
      bytes(Cell::Kind::kText, take_bytes(input, more));
      break;
    case 5:
      bytes(Cell::Kind::kBlob, take_bytes(input, more));
      break;
    case 6:  // up to some pages
      bytes(Cell::Kind::kText, take_bytes(input, take_number(input, 2) << more % 2));
      break;
    default:
      bytes(Cell::Kind::kBlob, take_bytes(input, take_number(input, 2) << more % 2));
  }
  return cell;
}

using Rows = std::array<std::vector<Row>, kTables>;

// Those of a table have growing numbers.
Rows take_rows(Bytes& input, const Choices& choices) {
  Rows rows;
  std::array<std::int64_t, kTables> numbers{-5, INT64_MIN};
  std::size_t bytes = 0;
  for (std::size_t count = 0; !input.empty() && count < kMostRows && bytes < kMostBytes; ++count) {
    const std::uint8_t choice = take_byte(input);
    const std::size_t table = choice & 1;
    std::uint64_t step = 1u + (choice >> 1) % 32;
    if ((choice & 64) != 0) step <<= take_byte(input) % 58;
    std::int64_t& number = numbers[table];
    if (step > static_cast<std::uint64_t>(INT64_MAX) - static_cast<std::uint64_t>(number) &&
        number >= 0) {
      break;
    }
    number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + step);
    Row row{.number = number, .cells = {}};
    for (std::size_t i = 0; i < choices.columns[table]; ++i) {
      row.cells.push_back(take_cell(input));
      bytes += row.cells.back().bytes.size() + 9;
    }
    rows[table].push_back(std::move(row));
  }
  return rows;
}

std::string name_of(std::size_t table) { return "t" + std::to_string(table); }

void create(Database& db, const Choices& choices) {
  int reserved = choices.reserved;
  if (reserved > 0) {
    require(sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) ==
            SQLITE_OK);
  }
  db.exec("PRAGMA page_size=" + std::to_string(choices.page_bytes) +
          "; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
  for (std::size_t table = 0; table < kTables; ++table) {
    std::string sql = "CREATE TABLE " + name_of(table) + " (";
    for (std::size_t i = 0; i < choices.columns[table]; ++i) sql += "c" + std::to_string(i) + ", ";
    db.exec(sql + "seq INTEGER PRIMARY KEY)");
  }
  db.exec("COMMIT");
}

void encode(const Row& row, RecordEncoder& record) {
  record.begin_row();
  for (const Cell& cell : row.cells) {
    switch (cell.kind) {
      case Cell::Kind::kNull:
        record.null();
        break;
      case Cell::Kind::kInteger:
        record.integer(cell.integer);
        break;
      case Cell::Kind::kReal:
        record.real(cell.real);
        break;
      case Cell::Kind::kText:
        record.text(cell.bytes);
        break;
      case Cell::Kind::kBlob:
        record.blob(std::as_bytes(std::span(cell.bytes.data(), cell.bytes.size())));
    }
  }
  record.null();  // the primary key
}

std::int64_t number_in(Database& db, const std::string& sql) {
  Statement rows(db, sql);
  require(rows.step());
  return rows.integer(0);
}

// Batches of the tables in turn, so that their pages lie among each other.
void write(const Choices& choices, const std::string& path, Database& db, const Rows& rows) {
  PageFile file(path, "fuzz", choices.lock_byte);
  require(file.page_size().bytes == choices.page_bytes);
  std::array<TablePages, kTables> pages{TablePages(file.page_size()), TablePages(file.page_size())};
  std::array<std::size_t, kTables> next{};
  RecordEncoder record;
  MadePages made;
  const auto is_left = [&](std::size_t table) { return next[table] < rows[table].size(); };
  for (std::size_t table = 0; is_left(0) || is_left(1); table = 1 - table) {
    for (std::size_t count = 0; count < choices.batch && is_left(table); ++count) {
      const Row& row = rows[table][next[table]++];
      encode(row, record);
      pages[table].add(row.number, record, made);
    }
    const PageRun run = file.allocate(made.bytes.size() / choices.page_bytes);
    pages[table].number(made, run);
    file.write(run, made.bytes);
    made.clear();
  }
  for (std::size_t table = 0; table < kTables; ++table) {
    const auto root = number_in(
        db, "SELECT rootpage FROM sqlite_schema WHERE name = '" + name_of(table) + "'");
    pages[table].finish(static_cast<std::uint32_t>(root), file);
  }
  file.finish();
}

bool is_equal(sqlite3_stmt* stmt, int column, const Cell& cell) {
  const int type = sqlite3_column_type(stmt, column);
  switch (cell.kind) {
    case Cell::Kind::kNull:
      return type == SQLITE_NULL;
    case Cell::Kind::kInteger:
      return type == SQLITE_INTEGER && sqlite3_column_int64(stmt, column) == cell.integer;
    case Cell::Kind::kReal:
      if (cell.real != cell.real) return type == SQLITE_NULL;  // SQLite has no NaN
      return type == SQLITE_FLOAT && std::bit_cast<std::uint64_t>(sqlite3_column_double(
                                         stmt, column)) == std::bit_cast<std::uint64_t>(cell.real);
    default:
      break;
  }
  if (type != (cell.kind == Cell::Kind::kText ? SQLITE_TEXT : SQLITE_BLOB)) return false;
  const auto* data = static_cast<const char*>(sqlite3_column_blob(stmt, column));
  const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(stmt, column));
  return (bytes == 0 ? std::string_view() : std::string_view(data, bytes)) == cell.bytes;
}

class Query {
 public:
  Query(Database& db, const std::string& sql) {
    require(sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &stmt_, nullptr) == SQLITE_OK);
  }
  ~Query() { sqlite3_finalize(stmt_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  [[nodiscard]] sqlite3_stmt* get() const noexcept { return stmt_; }
  [[nodiscard]] bool step() const {
    const int result = sqlite3_step(stmt_);
    require(result == SQLITE_ROW || result == SQLITE_DONE);
    return result == SQLITE_ROW;
  }

 private:
  sqlite3_stmt* stmt_ = nullptr;
};

void check_row(const Query& query, const Row& row) {
  require(query.step());
  const auto columns = static_cast<int>(row.cells.size());
  for (int i = 0; i < columns; ++i) {
    require(is_equal(query.get(), i, row.cells[static_cast<std::size_t>(i)]));
  }
  require(sqlite3_column_int64(query.get(), columns) == row.number);
}

void check_whole(Database& db) {
  Statement rows(db, "PRAGMA integrity_check");  // tells of pages that nothing names, too
  require(rows.step() && rows.text(0) == "ok");
  require(number_in(db, "PRAGMA freelist_count") == 0);
}

void check_table(Database& db, std::size_t table, const std::vector<Row>& rows) {
  const std::string select = "SELECT * FROM " + name_of(table);
  const Query all(db, select);  // along the leaves
  for (const Row& row : rows) check_row(all, row);
  require(!all.step());
  const Query one(db, select + " WHERE seq = ?");  // from the root down
  for (const Row& row : rows) {
    sqlite3_bind_int64(one.get(), 1, row.number);
    check_row(one, row);
    sqlite3_reset(one.get());
  }
}

// SQLite itself goes on with the pages as with its own.
void change(Database& db, const Rows& rows) {
  db.exec("BEGIN");
  for (std::size_t table = 0; table < kTables; ++table) {
    db.exec("DELETE FROM " + name_of(table) + " WHERE seq % 3 <> 0");
    std::vector<Row> left;
    std::ranges::copy_if(rows[table], std::back_inserter(left),
                         [](const Row& row) { return row.number % 3 == 0; });
    check_table(db, table, left);
    db.exec("INSERT INTO " + name_of(table) + " (c0) SELECT c0 FROM " + name_of(1 - table) +
            " WHERE (SELECT ifnull(max(seq), 0) FROM " + name_of(table) + ") < 1 << 40");
  }
  Statement whole(db, "PRAGMA integrity_check");
  require(whole.step() && whole.text(0) == "ok");
  require(!whole.step());
  db.exec("COMMIT");
}

}  // namespace

// Input: choices, then rows, each a byte and its values.
void page_writer(Bytes input) {
  static const Scratch scratch;
  const Choices choices = take_choices(input);
  const Rows rows = take_rows(input, choices);
  const std::string path = (scratch.path() / "x.db").string();
  fs::remove(path);
  const LockByte lock(choices.lock_byte);
  {
    Database db(path, "fuzz", Database::Mode::kCreate);
    create(db, choices);
    write(choices, path, db, rows);
  }
  Database db(path, "fuzz", Database::Mode::kCreate);
  db.exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
  require(static_cast<std::uint64_t>(number_in(db, "PRAGMA page_count")) * choices.page_bytes ==
          fs::file_size(path));
  check_whole(db);
  for (std::size_t table = 0; table < kTables; ++table) check_table(db, table, rows[table]);
  if (choices.changes) change(db, rows);
}

}  // namespace wbscope::fuzz
