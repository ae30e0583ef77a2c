// SPDX-License-Identifier: Apache-2.0
// PageQueue: any number of threads makes the same file, and errors come back.
#include "sink/page_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "pages_support.h"

namespace wbscope {
namespace {

using testing::PageRow;
using testing::PagesDatabase;
using testing::TempDir;

constexpr std::size_t kTables = 5;
constexpr std::size_t kBatches = 200;

struct Batch {
  std::size_t table;
  std::vector<PageRow> rows;
};

// Of the same sizes each time; some rows need pages of their own, also the last
// of their batch.
std::vector<Batch> some_batches() {
  std::mt19937 chance(41);
  std::vector<Batch> batches;
  std::int64_t number = 0;
  for (std::size_t i = 0; i < kBatches; ++i) {
    Batch batch{.table = chance() % kTables, .rows = {}};
    const std::size_t rows = 1 + chance() % 60;
    for (std::size_t row = 0; row < rows; ++row) {
      const bool is_long = chance() % 40 == 0 || (row + 1 == rows && i % 7 == 0);
      batch.rows.push_back({++number, {number, std::string(is_long ? 5000 : chance() % 50, 'x')}});
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

// most: rows that a batch adds before it waits for their pages to be written.
std::string file_of(const std::vector<Batch>& batches, unsigned threads,
                    std::size_t most = SIZE_MAX) {
  const TempDir dir;
  std::vector<std::vector<PageRow>> wanted(kTables);
  PagesDatabase database(dir.path("x.db"), 2, 1024, kTables);
  PageFile file(dir.path("x.db"), "x.db");
  {
    std::vector<TablePages> tables(kTables, TablePages(file.page_size()));
    PageQueue queue(file, threads);
    for (auto& table : tables) (void)queue.add_table(table);
    for (const auto& batch : batches) {
      wanted[batch.table].insert(wanted[batch.table].end(), batch.rows.begin(), batch.rows.end());
      // Some twenty at a time.
      queue.add(batch.table, 400'000, [&, next = std::size_t{0}](MadePages& made) mutable {
        RecordEncoder record;
        for (std::size_t count = 0; count < most && next < batch.rows.size(); ++count) {
          const PageRow& row = batch.rows[next++];
          testing::encode(row, record);
          tables[batch.table].add(row.number, record, made);
        }
        return next == batch.rows.size();
      });
    }
    queue.drain();
    for (std::size_t i = 0; i < kTables; ++i) {
      tables[i].finish(database.root("t" + std::to_string(i)), file);
    }
  }
  file.finish();
  for (std::size_t i = 0; i < kTables; ++i) {
    database.expect("t" + std::to_string(i), wanted[i]);
  }
  return testing::read_file(dir.path("x.db"));
}

TEST(PageQueue, TheSameFileWithAnyNumberOfThreads) {
  const auto batches = some_batches();
  const std::string alone = file_of(batches, 1);
  for (const unsigned threads : {1u, 2u, 7u}) EXPECT_TRUE(file_of(batches, threads) == alone);
}

TEST(PageQueue, BatchesThatComeInParts) {
  const auto batches = some_batches();
  const std::string alone = file_of(batches, 1, 13);  // checks the rows
  for (const unsigned threads : {2u, 7u}) EXPECT_TRUE(file_of(batches, threads, 13) == alone);
  (void)file_of(batches, 2, 1);
}

TEST(PageQueue, TellsOfPagesInTheOrderOfTheirNumbers) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  std::vector<TablePages> pages(3, TablePages(file.page_size()));
  std::vector<std::uint64_t> told;
  PageQueue queue(file, 3, [&](MadePages& made) {
    told.insert(told.end(), made.addresses.begin(), made.addresses.end());
  });
  for (auto& table : pages) (void)queue.add_table(table);
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t i = 0; i < 300; i += 3) {
    for (std::uint64_t part = 0; part < 3; ++part) wanted.push_back(i + part);
    queue.add(i % 7 % 3, 1, [i, part = std::uint64_t{0}](MadePages& made) mutable {
      made.addresses.push_back(i + part++);
      return part == 3;
    });
  }
  queue.drain();
  EXPECT_EQ(told, wanted);
}

TEST(PageQueue, WhatABatchRaisesComesBack) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  TablePages pages(file.page_size());
  PageQueue queue(file, 2);
  const std::size_t table = queue.add_table(pages);
  queue.add(table, 1, [](MadePages&) -> bool { throw std::runtime_error("a full disk"); });
  EXPECT_THROW(queue.drain(), std::runtime_error);
  EXPECT_THROW(queue.add(table, 1, [](MadePages&) { return true; }), std::runtime_error);
}

TEST(PageQueue, EndsWithBatchesThatNobodyHasBegun) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  TablePages pages(file.page_size());
  PageQueue queue(file, 1);
  const std::size_t table = queue.add_table(pages);
  for (int i = 0; i < 100; ++i) queue.add(table, 1, [](MadePages&) { return true; });
}

TEST(PageQueue, ABatchLargerThanAllMayBe) {
  const TempDir dir;
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  TablePages pages(file.page_size());
  PageQueue queue(file, 1);
  int done = 0;
  const std::size_t table = queue.add_table(pages);
  for (int i = 0; i < 3; ++i) queue.add(table, SIZE_MAX / 4, [&](MadePages&) { return ++done > 0; });
  queue.drain();
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace wbscope
