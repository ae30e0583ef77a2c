// SPDX-License-Identifier: Apache-2.0
// TablePages and RecordEncoder: SQLite reads what they wrote as what it would
// have written itself, and finds the file whole.
#include "sink/table_pages.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <limits>
#include <random>

#include "base/error.h"
#include "pages_support.h"

namespace wbscope {
namespace {

using testing::Bytes;
using testing::PageRow;
using testing::PagesDatabase;
using testing::PageValue;
using testing::TempDir;

constexpr std::size_t kPageSizes[] = {512, 1024, 4096, 8192, 65536};

void expect_same(const std::vector<PageRow>& rows, std::size_t page_bytes = 8192,
                 std::size_t batch = SIZE_MAX) {
  const TempDir dir;
  const std::size_t columns = rows.empty() ? 1 : rows[0].values.size();
  PagesDatabase database(dir.path("x.db"), columns, page_bytes);
  PageFile file(dir.path("x.db"), "x.db");
  testing::write_pages(file, database.root("t0"), rows, batch);
  database.expect("t0", rows);
}

std::string text_of(std::size_t bytes, std::size_t seed = 0) {
  std::string text(bytes, 'x');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (i * 7 + seed) % 26);
  return text;
}

TEST(TablePages, IntegersAtTheBordersOfTheirWidths) {
  std::vector<PageRow> rows;
  const auto add = [&rows](std::int64_t value) {
    rows.push_back({static_cast<std::int64_t>(rows.size() + 1), {value}});
  };
  for (const int bits : {0, 1, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 47, 48, 55, 56, 62}) {
    for (const int step : {-1, 0, 1}) {
      add((std::int64_t{1} << bits) + step);
      add(-(std::int64_t{1} << bits) + step);
    }
  }
  add(std::numeric_limits<std::int64_t>::min());
  add(std::numeric_limits<std::int64_t>::max());
  expect_same(rows);
}

TEST(TablePages, RealsAndNull) {
  std::vector<PageRow> rows;
  for (const double value :
       {0.0, -0.0, 0.5, -2.0, 1e300, 5e-324, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    rows.push_back({static_cast<std::int64_t>(rows.size()), {value, PageValue{}}});
  }
  expect_same(rows);
}

TEST(TablePages, TextsAndBlobsAtTheBordersOfTheirTypes) {
  std::vector<PageRow> rows;
  // Type 13 + 2n takes a second byte from n = 58 on, and a third from 8186 on.
  for (const std::size_t bytes : {0u, 1u, 56u, 57u, 58u, 59u, 8184u, 8185u, 8186u, 8187u, 70000u}) {
    Bytes blob(ByteOrder::kLittle);
    blob.text(text_of(bytes, 3)).u8(0).u8(0xff);
    rows.push_back({static_cast<std::int64_t>(bytes), {text_of(bytes), blob}});
  }
  expect_same(rows);
  expect_same(rows, 65536);
}

TEST(TablePages, NumbersOfRowsAtTheBordersOfVarints) {
  std::vector<PageRow> rows{{std::numeric_limits<std::int64_t>::min(), {text_of(2000)}},
                            {-1, {text_of(2000)}},
                            {0, {text_of(2000)}}};
  for (int bits = 7; bits <= 56; bits += 7) {
    for (const int step : {-1, 0, 1}) {
      rows.push_back({(std::int64_t{1} << bits) + step, {text_of(2000)}});
    }
  }
  rows.push_back({std::numeric_limits<std::int64_t>::max(), {text_of(2000)}});
  expect_same(rows);
}

TEST(TablePages, AnyNumberOfColumns) {
  for (const std::size_t columns : {1u, 2u, 124u, 125u, 126u, 127u, 128u, 1000u, 1999u}) {
    std::vector<PageRow> rows;
    for (std::int64_t number = 1; number <= 40; ++number) {
      PageRow row{number, {}};
      for (std::size_t i = 0; i < columns; ++i) {
        row.values.emplace_back(static_cast<std::int64_t>(i) * number % 300);
      }
      rows.push_back(row);
    }
    SCOPED_TRACE(columns);
    expect_same(rows);
  }
}

TEST(TablePages, NoRow) {
  for (const std::size_t page_bytes : kPageSizes) expect_same({}, page_bytes);
}

TEST(TablePages, OneRow) {
  for (const std::size_t page_bytes : kPageSizes) expect_same({{7, {text_of(50)}}}, page_bytes);
}

// A record of as much as a leaf takes, and a little more or less; of a page more
// and less; in batches that end behind a row that waits for its pages' numbers.
TEST(TablePages, RowsLongerThanAPage) {
  for (const std::size_t page_bytes : kPageSizes) {
    const std::size_t most = page_bytes - 35;
    std::vector<PageRow> rows;
    for (std::size_t pages = 0; pages < 4; ++pages) {
      for (const int more : {-9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 40}) {
        const std::size_t bytes = most + pages * (page_bytes - 4) + static_cast<std::size_t>(more);
        const auto number = static_cast<std::int64_t>(rows.size() + 1);
        rows.push_back({number, {number % 3 == 0 ? text_of(20) : text_of(bytes, bytes)}});
      }
    }
    for (const std::size_t batch : {std::size_t{1}, std::size_t{2}, std::size_t{7}, SIZE_MAX}) {
      SCOPED_TRACE(page_bytes);
      expect_same(rows, page_bytes, batch);
    }
  }
}

TEST(TablePages, OneLongRow) {
  for (const std::size_t page_bytes : kPageSizes) expect_same({{1, {text_of(200000)}}}, page_bytes);
}

// A row is a leaf: every number of leaves that two levels hold, and where the
// third and the fourth begin.
TEST(TablePages, EveryNumberOfLeaves) {
  const auto rows_of = [](std::int64_t count, std::int64_t factor) {
    std::vector<PageRow> rows;
    for (std::int64_t n = 1; n <= count; ++n) rows.push_back({n * factor, {text_of(300)}});
    return rows;
  };
  for (std::int64_t count = 1; count <= 200; ++count) {
    SCOPED_TRACE(count);
    expect_same(rows_of(count, 1), 512);
  }
  for (std::int64_t count = 40; count <= 80; ++count) {
    SCOPED_TRACE(count);
    expect_same(rows_of(count, std::int64_t{1} << 50), 512);
  }
  // 84 leaves of small numbers to a page.
  for (const std::int64_t count : {5000, 5700, 5800, 5900, 6000, 6100, 6200}) {
    SCOPED_TRACE(count);
    expect_same(rows_of(count, 1), 512, 100);
  }
}

TEST(TablePages, ManyRows) {
  std::vector<PageRow> rows;
  for (std::int64_t n = 0; n < 60000; ++n) {
    rows.push_back({3 * n, {n * n, text_of(static_cast<std::size_t>(n % 40)), PageValue{}}});
  }
  expect_same(rows, 1024, 512);
  expect_same(rows, 65536, 512);
}

// Rows of any shape, in batches of any size, into pages of any size.
TEST(TablePages, RandomRows) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 chance(seed);
    const std::size_t page_bytes = std::size_t{512} << chance() % 8;
    const std::size_t columns = 1 + chance() % 30;
    std::vector<PageRow> rows;
    std::int64_t number = -static_cast<std::int64_t>(chance() % 1000);
    for (std::size_t count = chance() % 400; count > 0; --count) {
      PageRow row{number += 1 + static_cast<std::int64_t>(chance() >> (20 + chance() % 44)), {}};
      for (std::size_t i = 0; i < columns; ++i) {
        // Short ones are the most.
        const std::size_t bytes = chance() % (chance() % 50 == 0 ? 3 * page_bytes : 30);
        switch (chance() % 5) {
          case 0:
            row.values.emplace_back();
            break;
          case 1:
            row.values.emplace_back(std::bit_cast<double>(chance()));
            break;
          case 2:
            row.values.emplace_back(text_of(bytes, seed));
            break;
          case 3:
            row.values.emplace_back(Bytes(ByteOrder::kLittle).text(text_of(bytes, seed)));
            break;
          default:
            row.values.emplace_back(static_cast<std::int64_t>(chance()) >> chance() % 64);
        }
      }
      rows.push_back(row);
    }
    expect_same(rows, page_bytes, 1 + chance() % 100);
  }
}

TEST(TablePages, PagesWithReservedBytes) {
  const TempDir dir;
  {
    Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
    int reserved = 12;
    ASSERT_EQ(sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved),
              SQLITE_OK);
    db.exec("PRAGMA page_size=1024; CREATE TABLE before(x)");
  }
  PagesDatabase database(dir.path("x.db"), 1, 1024);
  PageFile file(dir.path("x.db"), "x.db");
  ASSERT_EQ(file.page_size().usable, 1012u);
  std::vector<PageRow> rows;
  for (std::int64_t n = 1; n < 300; ++n) {
    rows.push_back({n, {text_of(static_cast<std::size_t>(n * 11))}});
  }
  testing::write_pages(file, database.root("t0"), rows);
  database.expect("t0", rows);
}

// The page of the lock byte is left out, wherever in a run it lies. SQLite takes
// another byte than that at 1 GiB for a test.
TEST(TablePages, NoPageLiesOnTheLock) {
  for (std::uint64_t lock_page = 4; lock_page < 40; ++lock_page) {
    SCOPED_TRACE(lock_page);
    const std::uint64_t lock_byte = (lock_page - 1) * 1024;
    sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, static_cast<unsigned>(lock_byte));
    const TempDir dir;
    std::vector<PageRow> rows;
    for (std::int64_t n = 1; n < 30; ++n) rows.push_back({n, {text_of(n % 2 == 0 ? 900 : 3000)}});
    {
      PagesDatabase database(dir.path("x.db"), 1, 1024);
      PageFile file(dir.path("x.db"), "x.db", lock_byte);
      testing::write_pages(file, database.root("t0"), rows, 5);
      database.expect("t0", rows);
    }
    sqlite3_test_control(SQLITE_TESTCTRL_PENDING_BYTE, 0x40000000u);
  }
}

TEST(PageFile, NumbersAroundTheLock) {
  const PageRun before(10, 12);
  EXPECT_EQ(before.number(1), 11u);
  EXPECT_EQ(before.number(2), 13u);
  EXPECT_EQ(before.before_jump(), 2u);
  const PageRun at(12, 12);
  EXPECT_EQ(at.number(0), 13u);
  EXPECT_EQ(at.number(5), 18u);
  const PageRun behind(13, 12);
  EXPECT_EQ(behind.number(1), 14u);
}

// Beyond 4 GiB; the pages between are holes.
TEST(PageFile, PagesFarBehind) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  const PageRun skipped = file.allocate(700'000);
  EXPECT_EQ(skipped.number(131'070), PageFile::kLockByte / 8192 + 2);
  std::vector<PageRow> rows;
  for (std::int64_t n = 1; n <= 2000; ++n) rows.push_back({n, {text_of(100)}});
  testing::write_pages(file, database.root("t0"), rows);
  EXPECT_GT(std::filesystem::file_size(dir.path("x.db")), std::uint64_t{5} << 30);
  EXPECT_EQ(database.number("SELECT sum(length(c0)) FROM t0"), 200'000);
  EXPECT_GT(database.number("PRAGMA page_count"), 700'000);
}

// Page 2^20 + 1 of 4 KiB begins at 4 GiB. Rows lie before it, across it, some of
// them in chains of pages, and behind; the pages that are left out are a hole.
TEST(PageFile, RowsAcrossFourGibibytes) {
  const TempDir dir;
  constexpr std::size_t kPage = 4096;
  constexpr std::uint32_t kBorder = 1u << 20;
  PagesDatabase database(dir.path("x.db"), 1, kPage);
  PageFile file(dir.path("x.db"), "x.db");
  TablePages pages(file.page_size());
  RecordEncoder record;
  MadePages made;
  std::vector<PageRow> rows;
  const auto add = [&](std::size_t count) {
    for (; count > 0; --count) {
      const auto number = static_cast<std::int64_t>(rows.size());
      rows.push_back({number, {text_of(number % 3 == 0 ? 30000 : 900, rows.size())}});
      testing::encode(rows.back(), record);
      pages.add(number, record, made);
    }
    const PageRun run = file.allocate(made.bytes.size() / kPage);
    pages.number(made, run);
    file.write(run, made.bytes);
    made.clear();
    return run;
  };
  const PageRun before = add(200);
  const std::uint32_t next = add(1).number(0) + 1;
  ASSERT_LT(before.number(0), next);
  (void)file.allocate(kBorder - next - 200);
  for (int batch = 0; batch < 30; ++batch) (void)add(20);
  ASSERT_GT(add(10).number(0), kBorder + 500);
  pages.finish(database.root("t0"), file);
  file.finish();
  EXPECT_GT(std::filesystem::file_size(dir.path("x.db")), std::uint64_t{1} << 32);

  Statement check(database.db(), "PRAGMA integrity_check");  // trees first, then what is unused
  while (check.step()) EXPECT_NE(check.text(0).find("never used"), std::string::npos);
  EXPECT_EQ(database.number("SELECT count(*) FROM t0"), static_cast<std::int64_t>(rows.size()));
  Statement all(database.db(), "SELECT seq, c0 FROM t0");
  Statement one(database.db(), "SELECT c0 FROM t0 WHERE seq = ?");
  for (const PageRow& row : rows) {
    ASSERT_TRUE(all.step());
    EXPECT_EQ(all.integer(0), row.number);
    ASSERT_TRUE(all.text(1) == std::get<std::string>(row.values[0])) << row.number;
    one.bind(1, row.number);
    ASSERT_TRUE(one.step());
    ASSERT_TRUE(one.text(0) == std::get<std::string>(row.values[0])) << row.number;
    EXPECT_FALSE(one.step());
  }
}

TEST(PageFile, AFileThatCannotGrowIsAnError) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 100'000;
  setrlimit(RLIMIT_FSIZE, &small);
  std::vector<PageRow> rows;
  for (std::int64_t n = 1; n <= 200; ++n) rows.push_back({n, {text_of(1000)}});
  const auto error = testing::error_of(
      [&] { testing::write_pages(file, database.root("t0"), rows); });
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "cannot-write-database");
  EXPECT_EQ(error->exit_code(), Exit::kEnvironment);
  EXPECT_EQ(error->message().text, "File too large");
}

TEST(PageFile, MorePagesThanSqliteTakes) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  (void)file.allocate(0x3ffffff0);
  EXPECT_TRUE(testing::error_of([&] { (void)file.allocate(100); }));
}

// SQLite gives no row of so many bytes back.
TEST(RecordEncoder, RefusesARowThatIsTooLong) {
  RecordEncoder record;
  record.begin_row();
  record.integer(1);
  const std::byte first{};
  EXPECT_THROW(record.blob(std::span(&first, 1'000'000'000)), Error);  // before it is read
}

}  // namespace
}  // namespace wbscope
