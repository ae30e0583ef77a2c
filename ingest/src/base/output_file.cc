// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/error.h"

namespace wbscope {
namespace {

constexpr const char* kFix = "name an output in a directory that you can write, with room left";

[[noreturn]] void throw_exists(const std::string& path) {
  throw Error(Exit::kUsage, {.slug = "output-exists",
                             .object = path,
                             .text = "found a file of that name, wanted a new one",
                             .at = {},
                             .have = {},
                             .effect = "the file was left as it is",
                             .fix = "use --force to replace it, or name another output"});
}

}  // namespace

OutputFile::OutputFile(std::string path, bool force) : path_(std::move(path)), force_(force) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path_, ignored)) {
    throw Error(Exit::kUsage, {.slug = "output-is-directory",
                               .object = path_,
                               .text = "found a directory, wanted the name of a file",
                               .at = {},
                               .have = {},
                               .effect = {},
                               .fix = "name a file in it"});
  }
  if (!force_ && fs::exists(path_, ignored)) throw_exists(path_);
  const fs::path target(path_);
  std::string name = ".";
  name.append(target.filename().string()).append(".");
  name.append(std::to_string(::getpid())).append(".part");
  temp_path_ = (target.has_parent_path() ? target.parent_path() / name : fs::path(name)).string();
  const int fd = ::open(temp_path_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0) throw_system_error("cannot-write", path_, "create the output", errno, kFix);
  ::close(fd);
}

OutputFile::~OutputFile() {
  if (!committed_) ::unlink(temp_path_.c_str());
}

void OutputFile::commit() {
  const int fd = ::open(temp_path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw_system_error("cannot-write", path_, "reopen the output", errno, kFix);
  const int synced = ::fsync(fd);
  const int problem = errno;
  ::close(fd);
  if (synced != 0) throw_system_error("cannot-write", path_, "sync the output", problem, kFix);
  // RENAME_NOREPLACE: nobody may have made the target since we looked.
  const unsigned flags = force_ ? 0u : RENAME_NOREPLACE;
  int renamed = ::renameat2(AT_FDCWD, temp_path_.c_str(), AT_FDCWD, path_.c_str(), flags);
  if (renamed != 0 && errno == EINVAL && !force_) {
    // NFS, 9p and others do not know the flag; link() does not replace either.
    renamed = ::link(temp_path_.c_str(), path_.c_str());
    if (renamed == 0) ::unlink(temp_path_.c_str());
  }
  if (renamed != 0) {
    if (errno == EEXIST) throw_exists(path_);
    throw_system_error("cannot-write", path_, "rename the output", errno, kFix);
  }
  committed_ = true;
}

}  // namespace wbscope
