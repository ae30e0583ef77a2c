// SPDX-License-Identifier: Apache-2.0
// Positioned reads of a file.
#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/interrupt.h"

namespace wbscope {
namespace {

constexpr std::size_t kHashBlock = 1 << 20;

[[noreturn]] void throw_unreadable(const std::string& path, const std::string& why,
                                   const std::string& fix) {
  throw Error(Exit::kInput, {.slug = "cannot-read",
                             .object = path,
                             .text = why,
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = fix});
}

[[noreturn]] void throw_no_regular_file(const std::string& path) {
  throw_unreadable(path, "found something that is not a regular file, wanted a trace",
                   "save it to a file first, then name that file");
}

// Waits for nobody: a FIFO without a writer would hold an open() for ever.
int open_to_read(const std::string& path) {
  int fd = -1;
  do {
    throw_if_interrupted();
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

std::int64_t modified_ns(const struct stat& info) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec;
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  fd_ = open_to_read(path_);
  if (fd_ < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    throw_system_error("cannot-open", path_, "open it", errno,
                       "close other programs or raise the limit (ulimit -n)");
  }
  if (fd_ < 0 && errno == ENXIO) throw_no_regular_file(path_);  // a socket
  if (fd_ < 0) {
    throw_unreadable(path_, std::string("cannot open: ") + std::strerror(errno),
                     "name a trace or a run folder that you can read");
  }
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw_no_regular_file(path_);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
  modified_ns_ = modified_ns(info);
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string InputFile::name() const {
  const auto slash = path_.find_last_of('/');
  return slash == std::string::npos ? path_ : path_.substr(slash + 1);
}

std::size_t InputFile::read_some(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  if (fd_ < 0) {
    if (offset >= size_) return 0;
    done = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - offset));
    std::ranges::copy(memory_.subspan(static_cast<std::size_t>(offset), done), out.begin());
    return done;
  }
  while (done < out.size() && offset + done < size_) {
    const ssize_t n = ::pread(fd_, out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw_unreadable(path_,
                       "cannot read at offset " + std::to_string(offset + done) + ": " +
                           std::strerror(errno),
                       "copy the file to a sound disk and try again");
    }
    if (n == 0) break;  // somebody cut the file short
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::string InputFile::real_path() const {
  std::error_code problem;
  const auto path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd_), problem);
  return problem ? std::string() : path.string();
}

std::string InputFile::change() const {
  struct stat info {};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0) return {};
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size != size_) {
    return "its size was " + std::to_string(size_) + " bytes and is " + std::to_string(size);
  }
  return modified_ns(info) == modified_ns_ ? "" : "it was written to";
}

std::string InputFile::hash() const {
  std::vector<std::byte> block(kHashBlock);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (std::uint64_t offset = 0; offset < size_;) {
    throw_if_interrupted();
    const std::size_t n = read_some(offset, block);
    if (n == 0) break;
    XXH3_64bits_update(&state, block.data(), n);
    offset += n;
  }
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits_digest(&state)));
  return text;
}

std::optional<std::uint64_t> first_nonzero(const InputFile& file, std::uint64_t begin,
                                           std::uint64_t end) {
  constexpr std::uint64_t kMost = 1 << 20;
  constexpr std::uint64_t kBlock = 64 << 10;
  std::vector<std::byte> block;
  for (std::uint64_t at = begin; at < end && at - begin < kMost; at += kBlock) {
    block.resize(static_cast<std::size_t>(std::min(end - at, kBlock)));
    block.resize(file.read_some(at, block));
    const auto found = std::ranges::find_if(block, [](std::byte b) { return b != std::byte{0}; });
    if (found != block.end()) return at + static_cast<std::uint64_t>(found - block.begin());
    if (block.empty()) break;
  }
  return std::nullopt;
}

std::string read_text_file(const std::string& path, std::size_t max, const std::string& folder) {
  const InputFile file(path);
  if (!folder.empty()) {
    // Of the file that is open: a name may become a link at any moment.
    std::error_code problem;
    const std::string within = std::filesystem::canonical(folder, problem).string() + "/";
    const std::string real = file.real_path();
    if (!problem && !real.empty() && within != "//" && !real.starts_with(within)) {
      throw_unreadable(path, "is a symbolic link to " + real + ", outside of the folder",
                       "put a copy of that file in its place");
    }
  }
  std::string text;
  // /proc files say size 0; sidecars are copies, but allow for both.
  if (file.size() > max) {
    throw_unreadable(path,
                     "found " + std::to_string(file.size()) + " bytes, wanted at most " +
                         std::to_string(max),
                     "check that the file is what its name says");
  }
  text.resize(static_cast<std::size_t>(file.size()));
  const std::size_t n = file.read_some(0, std::as_writable_bytes(std::span(text)));
  text.resize(n);
  return text;
}

}  // namespace wbscope
