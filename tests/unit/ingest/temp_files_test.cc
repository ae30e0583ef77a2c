// SPDX-License-Identifier: Apache-2.0
// Temporary files of SQLite that cannot be written: the error names their folder.
#include "sink/temp_files.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "sink/staged_table.h"
#include "support.h"

namespace wbscope {
namespace {

using testing::TempDir;

// No file of this process gets longer, in its time.
class ShortFiles {
 public:
  explicit ShortFiles(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~ShortFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;

 private:
  rlimit before_{};
};

constexpr const char* kManyRows =
    " WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 300)"
    " SELECT n, randomblob(30000) FROM c";

void expect_temp_folder(const std::optional<Error>& error, const std::string& text) {
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "no-room");
  EXPECT_EQ(error->exit_code(), Exit::kEnvironment);
  EXPECT_TRUE(std::filesystem::is_directory(error->message().object)) << error->message().object;
  EXPECT_TRUE(error->message().text.ends_with(text)) << error->message().text;
  EXPECT_NE(error->message().fix.find("SQLITE_TMPDIR"), std::string::npos);
}

TEST(TempFiles, AStagedTableThatIsTooLarge) {
  const TempDir dir;
  Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
  StagedTable table(db, "t", "(a INTEGER, b BLOB)", true);
  const ShortFiles limit(1 << 20);
  expect_temp_folder(
      testing::error_of([&] { db.exec(std::string("INSERT INTO t") + kManyRows); }),
      ": File too large");
}

TEST(TempFiles, TheDatabaseItselfIsNotATemporaryFile) {
  const TempDir dir;
  Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
  StagedTable table(db, "t", "(a INTEGER, b BLOB)", false);
  const ShortFiles limit(1 << 20);
  const auto error =
      testing::error_of([&] { db.exec(std::string("INSERT INTO t") + kManyRows); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "cannot-write-database");
  EXPECT_EQ(error->message().object, "x.db");
}

// A problem is that of its own statement: what fails later has its own cause.
TEST(TempFiles, AProblemIsToldOnce) {
  const TempDir dir;
  Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
  StagedTable table(db, "t", "(a INTEGER, b BLOB)", true);
  {
    const ShortFiles limit(1 << 20);
    (void)testing::error_of([&] { db.exec(std::string("INSERT INTO t") + kManyRows); });
  }
  EXPECT_FALSE(take_temp_problem(SQLITE_FULL));
  EXPECT_FALSE(take_temp_problem(SQLITE_IOERR_WRITE));
}

int no_access(const char*, int) {
  errno = EACCES;
  return -1;
}

TEST(TempFiles, NoFolderThatCanBeWritten) {
  const TempDir dir;
  Database db(dir.path("x.db"), "x.db", Database::Mode::kCreate);
  StagedTable table(db, "t", "(a INTEGER, b BLOB)", true);
  sqlite3_vfs* const vfs = sqlite3_vfs_find("unix");
  const sqlite3_syscall_ptr before = vfs->xGetSystemCall(vfs, "access");
  vfs->xSetSystemCall(vfs, "access", reinterpret_cast<sqlite3_syscall_ptr>(no_access));
  const auto error =
      testing::error_of([&] { db.exec(std::string("INSERT INTO t") + kManyRows); });
  vfs->xSetSystemCall(vfs, "access", before);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "no-room");
  EXPECT_NE(error->message().object.find("$SQLITE_TMPDIR"), std::string::npos);
  EXPECT_TRUE(error->message().text.ends_with("none of them can be written"));
}

}  // namespace
}  // namespace wbscope
