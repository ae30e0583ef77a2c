// SPDX-License-Identifier: Apache-2.0
// How long an output may get for what is read: each of its writers holds to it.
#include "base/write_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pages_support.h"
#include "perfetto/packet_output.h"

namespace wbscope {
namespace {

using testing::error_of;
using testing::PagesDatabase;
using testing::TempDir;

constexpr std::uint64_t kFree = 64 * 8192;

// As after so many bytes of input.
WriteBudget budget_of(std::uint64_t read) {
  WriteBudget budget("trace.dat", "go on", kFree);
  budget.add_read(read);
  return budget;
}

std::string slug_of(const std::optional<Error>& error) {
  return error ? error->message().slug : "";
}

TEST(WriteBudget, GrowsWithWhatIsRead) {
  WriteBudget budget = budget_of(3);
  EXPECT_EQ(budget.most(), kFree + 3 * WriteBudget::kMostBytes);
  budget.add_read(4);
  EXPECT_EQ(budget.most(), kFree + 7 * WriteBudget::kMostBytes);
  budget.check(budget.most());
  const auto error = error_of([&] { budget.check(budget.most() + 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), Exit::kInput);
  EXPECT_EQ(error->message().slug, "unpack-limit");
  EXPECT_EQ(error->message().object, "trace.dat");
  EXPECT_EQ(error->message().fix, "go on");
  budget.add_read(UINT64_MAX / 2);  // the sizes of some sparse files
  EXPECT_EQ(budget.most(), UINT64_MAX);
}

TEST(WriteBudget, CanBeLifted) {
  WriteBudget budget = budget_of(0);
  budget.lift();
  budget.check(UINT64_MAX);
}

TEST(WriteBudget, OfTablesThatSqliteWrites) {
  const TempDir dir;
  WriteBudget budget = budget_of(0);
  Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
  begin_new_file(db);
  db.limit_size(budget);
  db.exec("CREATE TABLE t (b)");
  const auto insert = [&db](int rows) {
    return error_of([&] {
      for (int i = 0; i < rows; ++i) db.exec("INSERT INTO t VALUES (zeroblob(8000))");
    });
  };
  EXPECT_EQ(slug_of(insert(50)), "");
  db.note_read(50 * 8192 / WriteBudget::kMostBytes + 1);
  EXPECT_EQ(slug_of(insert(50)), "");
  EXPECT_EQ(slug_of(insert(50)), "unpack-limit");
}

TEST(WriteBudget, OfPagesThatAreWrittenPastSqlite) {
  const TempDir dir;
  const WriteBudget budget = budget_of(0);
  PagesDatabase database(dir.path("x.db"), 1);
  PageFile file(dir.path("x.db"), "x.db");
  file.limit_size(budget);
  (void)file.allocate(60);
  EXPECT_EQ(slug_of(error_of([&] { (void)file.allocate(60); })), "unpack-limit");
}

TEST(WriteBudget, OfPackets) {
  const TempDir dir;
  const WriteBudget budget = budget_of(0);
  PacketOutput output(dir.path("x.pftrace"), "x.pftrace", &budget);
  const std::string packet(kFree / 2, 'p');
  output.append({packet, packet});
  EXPECT_EQ(slug_of(error_of([&] { output.append({"p"}); })), "unpack-limit");
}

}  // namespace
}  // namespace wbscope
