// SPDX-License-Identifier: Apache-2.0
// OutputFile: a file appears under its name when it is whole, and nothing else
// is left behind.
#include "base/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support.h"

namespace wbscope {
namespace {

using testing::error_of;
using testing::read_file;
using testing::TempDir;
using Names = std::vector<std::string>;

void fill(const OutputFile& output, const std::string& text) {
  std::ofstream(output.temp_path()) << text;
}

TEST(OutputFile, AppearsWithCommit) {
  const TempDir dir;
  {
    OutputFile output(dir.path("run.db"), false);
    fill(output, "new");
    EXPECT_FALSE(std::filesystem::exists(output.path()));
    output.commit();
    EXPECT_TRUE(std::filesystem::exists(output.path()));
  }
  EXPECT_EQ(dir.names(), Names{"run.db"});
  EXPECT_EQ(read_file(dir.path("run.db")), "new");
}

TEST(OutputFile, IsRemovedWithoutCommit) {
  const TempDir dir;
  {
    OutputFile output(dir.path("run.db"), false);
    fill(output, "half");
    EXPECT_EQ(dir.names().size(), 1u);
  }
  EXPECT_TRUE(dir.names().empty());
}

TEST(OutputFile, ExistingFileIsKept) {
  const TempDir dir;
  dir.write("run.db", "old");
  const auto error = error_of([&] { OutputFile(dir.path("run.db"), false); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), Exit::kUsage);
  EXPECT_EQ(error->message().slug, "output-exists");
  EXPECT_NE(error->message().fix.find("--force"), std::string::npos);
  EXPECT_EQ(dir.names(), Names{"run.db"});
  EXPECT_EQ(read_file(dir.path("run.db")), "old");
}

TEST(OutputFile, ForceReplacesOnlyWithCommit) {
  const TempDir dir;
  dir.write("run.db", "old");
  {
    OutputFile output(dir.path("run.db"), true);
    fill(output, "never finished");
  }
  EXPECT_EQ(read_file(dir.path("run.db")), "old");
  {
    OutputFile output(dir.path("run.db"), true);
    fill(output, "new");
    output.commit();
  }
  EXPECT_EQ(dir.names(), Names{"run.db"});
  EXPECT_EQ(read_file(dir.path("run.db")), "new");
}

TEST(OutputFile, FileMadeMeanwhileIsKept) {
  const TempDir dir;
  {
    OutputFile output(dir.path("run.db"), false);
    dir.write("run.db", "somebody else's");
    const auto error = error_of([&] { output.commit(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message().slug, "output-exists");
  }
  EXPECT_EQ(dir.names(), Names{"run.db"});
  EXPECT_EQ(read_file(dir.path("run.db")), "somebody else's");
}

TEST(OutputFile, DirectoryIsNoOutput) {
  const TempDir dir;
  for (const bool force : {false, true}) {
    const auto error = error_of([&] { OutputFile(dir.path(""), force); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->exit_code(), Exit::kUsage);
    EXPECT_EQ(error->message().slug, "output-is-directory");
  }
  EXPECT_TRUE(dir.names().empty());
}

TEST(OutputFile, FolderThatIsNotThere) {
  const TempDir dir;
  const auto error = error_of([&] { OutputFile(dir.path("none/run.db"), false); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), Exit::kEnvironment);
  EXPECT_EQ(error->message().slug, "cannot-write");
  EXPECT_NE(error->message().text.find("No such file"), std::string::npos);
}

TEST(OutputFile, LongestNameThatFileSystemsAllow) {
  const TempDir dir;
  const std::string name(255, 'n');
  const std::string other(255, 'o');
  std::string left;
  {
    OutputFile output(dir.path(name), false);
    fill(output, "whole");
    left = output.temp_path();
    output.commit();
  }
  EXPECT_EQ(dir.names(), Names{name});
  std::ofstream(left) << "left by a run that was killed";
  { OutputFile output(dir.path(other), false); }
  EXPECT_EQ(dir.names().size(), 2u);
  { OutputFile output(dir.path(name), true); }
  EXPECT_EQ(dir.names(), Names{name});
}

TEST(OutputFile, LeftoversOfTheDeadAreRemoved) {
  const TempDir dir;
  dir.write(".run.db.1.part", "left by a run that was killed");
  dir.write(".run.db.1.2.part", "left too");
  dir.write(".run.db.x.part", "not ours");
  dir.write(".other.db.1.part", "of another output");
  {
    OutputFile living(dir.path("run.db"), false);
    OutputFile output(dir.path("run.db"), false);
    EXPECT_NE(living.temp_path(), output.temp_path());
    EXPECT_TRUE(std::filesystem::exists(living.temp_path()));
    fill(output, "new");
    output.commit();
  }
  EXPECT_EQ(dir.names(), (Names{".other.db.1.part", ".run.db.x.part", "run.db"}));
}

}  // namespace
}  // namespace wbscope
