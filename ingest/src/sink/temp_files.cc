// SPDX-License-Identifier: Apache-2.0
// Where SQLite's temporary files could not be written.
#include "sink/temp_files.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace wbscope {
namespace {

constexpr std::string_view kTempName = "/etilqs_";  // SQLITE_TEMP_FILE_PREFIX

using Open = int (*)(const char*, int, int);
using Write = ssize_t (*)(int, const void*, std::size_t, off_t);

Open open_before = nullptr;
Write write_before = nullptr;

// SQLite's calls come from C: nothing here may throw or allocate.
struct Noted {
  std::array<char, 4096> path{};
  std::size_t folder_bytes = 0;  // 0: nothing noted
  int error_number = 0;
  struct statvfs room {};
  bool has_room = false;
};
thread_local Noted noted;

void note(std::string_view path, int error_number) noexcept {
  const std::size_t at = path.rfind(kTempName);
  if (at == std::string_view::npos || path.size() > noted.path.size()) return;
  std::memmove(noted.path.data(), path.data(), path.size());
  noted.folder_bytes = at == 0 ? 1 : at;
  noted.error_number = error_number;
  // Now: what the statement has taken is given back before anybody reads of it.
  const char first_behind = noted.path[noted.folder_bytes];
  noted.path[noted.folder_bytes] = '\0';
  noted.has_room = ::statvfs(noted.path.data(), &noted.room) == 0;
  noted.path[noted.folder_bytes] = first_behind;
}

int open_and_note(const char* path, int flags, int mode) noexcept {
  const int fd = open_before(path, flags, mode);
  // Without O_CREAT, SQLite tries once more and finds no such file.
  if (fd < 0 && errno != EINTR && (flags & O_CREAT) != 0) {
    const int error_number = errno;
    note(path, error_number);
    errno = error_number;
  }
  return fd;
}

// The file has lost its name since it was opened, but not the kernel's link to it.
ssize_t write_and_note(int fd, const void* data, std::size_t bytes, off_t offset) noexcept {
  const ssize_t put = write_before(fd, data, bytes, offset);
  if (put < 0 && errno != EINTR) {
    const int error_number = errno;
    std::array<char, 64> link{};
    std::array<char, 4096> path{};
    (void)std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
    const ssize_t got = ::readlink(link.data(), path.data(), path.size());
    if (got > 0) note(std::string_view(path.data(), static_cast<std::size_t>(got)), error_number);
    errno = error_number;
  }
  return put;
}

template <typename Call>
void replace(sqlite3_vfs* vfs, const char* name, Call& before, Call after) noexcept {
  const sqlite3_syscall_ptr found = vfs->xGetSystemCall(vfs, name);
  if (found == nullptr) return;  // this build of SQLite does without
  before = reinterpret_cast<Call>(found);
  (void)vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(after));
}

std::string room_in(const struct statvfs& room) {
  if (room.f_files > 0 && room.f_favail == 0) return "no room for one more file";
  const auto bytes = [&room](fsblkcnt_t blocks) { return std::to_string(blocks * room.f_frsize); };
  return bytes(room.f_bavail) + " of " + bytes(room.f_blocks) + " bytes free";
}

}  // namespace

void watch_temp_files() noexcept {
  static const bool is_done = [] {
    sqlite3_vfs* const vfs = sqlite3_vfs_find("unix");  // all of its kinds share the calls
    if (vfs == nullptr || vfs->iVersion < 3) return false;
    replace(vfs, "open", open_before, static_cast<Open>(open_and_note));
    replace(vfs, "pwrite64", write_before, static_cast<Write>(write_and_note));
    if (write_before == nullptr) {
      replace(vfs, "pwrite", write_before, static_cast<Write>(write_and_note));
    }
    return true;
  }();
  static_cast<void>(is_done);
}

std::optional<TempProblem> take_temp_problem(int result) {
  if (result == SQLITE_IOERR_GETTEMPPATH) {
    return TempProblem{.folder = "$SQLITE_TMPDIR, $TMPDIR, /var/tmp, /usr/tmp, /tmp or .",
                       .text = "none of them can be written",
                       .have = {}};
  }
  const int kind = result & 0xff;
  const bool is_meant =
      kind == SQLITE_FULL || kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN;
  if (noted.folder_bytes == 0 || !is_meant) return std::nullopt;
  TempProblem problem{.folder = std::string(noted.path.data(), noted.folder_bytes),
                      .text = std::strerror(noted.error_number),
                      .have = noted.has_room ? room_in(noted.room) : ""};
  noted.folder_bytes = 0;
  return problem;
}

}  // namespace wbscope
