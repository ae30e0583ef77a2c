// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/interrupt.h"

namespace wbscope {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxNames = 100;
constexpr std::string_view kSuffix = ".part";
// What is put around a name, and what SQLite hangs on it, leaves longer ones no room in the
// 255 bytes that file systems give a name; some give 143.
constexpr std::size_t kMostStem = 96;
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

// Whether path still names the open file.
bool is_file_at(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(fd, &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

// What temporary files of this target are called by: its name, or short for a long one.
std::string stem_of(const std::string& target) {
  if (target.size() <= kMostStem) return target;
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: two targets of a folder keep apart
  for (const char c : target) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return "wbscope-" + std::to_string(hash);
}

// Whether name is ".TARGET.<numbers>.part".
bool is_temp_name(std::string_view name, std::string_view target) {
  if (name.size() <= target.size() + 2 + kSuffix.size() || name[0] != '.' ||
      name.substr(1, target.size()) != target || name[target.size() + 1] != '.' ||
      !name.ends_with(kSuffix)) {
    return false;
  }
  name.remove_prefix(target.size() + 2);
  name.remove_suffix(kSuffix.size());
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Removes the temporary files of writers that are dead. A file is removed only
// with its lock in hand, and a writer checks that its file is still there once
// it has the lock; so no living writer loses its file.
void remove_leftovers(const fs::path& target) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string name = stem_of(target.filename().string());
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string path = entry->path().string();
    if (!is_temp_name(entry->path().filename().string(), name)) continue;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        is_file_at(fd, path)) {
      ::unlink(path.c_str());
    }
    ::close(fd);
  }
}

}  // namespace

OutputFile::OutputFile(std::string path, bool force) : path_(std::move(path)), force_(force) {
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
  remove_leftovers(path_);
  make_temp_file();
}

OutputFile::~OutputFile() {
  if (!temp_path_.empty()) {
    ::unlink(temp_path_.c_str());
    remove_when_stopped("");
  }
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::make_temp_file() {
  const fs::path target(path_);
  std::error_code ignored;
  // Another machine or container may have a writer with our process id.
  for (int n = 0; n < kMaxNames; ++n) {
    std::string name = ".";
    name.append(stem_of(target.filename().string())).append(".").append(std::to_string(::getpid()));
    if (n > 0) name.append(".").append(std::to_string(n));
    name.append(kSuffix);
    const std::string temp =
        (target.has_parent_path() ? target.parent_path() / name : fs::path(name)).string();
    const int fd = ::open(temp.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) throw_system_error("cannot-write", path_, "create the output", errno, kFix);
    const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && is_file_at(fd, temp)) {
      fd_ = fd;
      temp_path_ = temp;
      remove_when_stopped(fs::absolute(temp, ignored).c_str());
      return;
    }
    ::close(fd);  // somebody took it for left behind, between open() and flock()
  }
  throw_system_error("cannot-write", path_, "create the output", EEXIST, kFix);
}

void OutputFile::commit() {
  if (::fsync(fd_) != 0) {
    throw_system_error("cannot-write", path_, "sync the output", errno, kFix);
  }
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
  remove_when_stopped("");
  temp_path_.clear();
}

}  // namespace wbscope
