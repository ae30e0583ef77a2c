// SPDX-License-Identifier: Apache-2.0
// Pages of an SQLite database, written past SQLite.
#include "sink/page_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/byte_reader.h"
#include "base/error.h"
#include "sink/sqlite_record.h"

namespace wbscope {
namespace {

// The header, in the first page.
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kPageBytesAt = 16;
constexpr std::size_t kReservedAt = 20;
constexpr std::size_t kChangeCounterAt = 24;
constexpr std::size_t kPagesAt = 28;
constexpr std::size_t kValidForAt = 92;  // the change counter that kPagesAt is of
// Of SQLite before 3.45; 8 TiB with pages of 8 KiB.
constexpr std::uint32_t kMaxPages = 0x3ffffffe;

constexpr std::uint64_t kSyncEvery = 16u << 20;  // bytes

std::uint32_t number_at(std::span<const std::byte> header, std::size_t at) {
  return load<std::uint32_t>(header.data() + at, ByteOrder::kBig);
}

}  // namespace

PageFile::PageFile(const std::string& path, std::string name, std::uint64_t lock_byte)
    : name_(std::move(name)) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) fail(errno);
  std::array<std::byte, kHeaderBytes> header{};
  const ssize_t got = ::pread(fd_, header.data(), header.size(), 0);
  if (got != static_cast<ssize_t>(header.size())) {
    const int problem = got < 0 ? errno : EIO;
    ::close(fd_);
    fail(problem);
  }
  const auto stored = load<std::uint16_t>(header.data() + kPageBytesAt, ByteOrder::kBig);
  size_.bytes = stored == 1 ? 65536u : stored;
  size_.usable = size_.bytes - std::to_integer<std::size_t>(header[kReservedAt]);
  pages_ = number_at(header, kPagesAt);
  lock_page_ = static_cast<std::uint32_t>(lock_byte / size_.bytes + 1);
}

PageFile::~PageFile() { ::close(fd_); }

void PageFile::fail(int error_number) const {
  throw Error(Exit::kEnvironment, {.slug = "cannot-write-database",
                                   .object = name_,
                                   .text = std::strerror(error_number),
                                   .at = {},
                                   .have = {},
                                   .effect = "nothing was written under that name",
                                   .fix = "check the free space and permissions of its directory"});
}

PageRun PageFile::allocate(std::size_t pages) {
  if (pages > kMaxPages - 2 || pages_ > kMaxPages - 2 - pages) fail(EFBIG);
  if (budget_ != nullptr) budget_->check((pages_ + pages) * size_.bytes);
  const PageRun run(pages_ + 1, lock_page_);
  if (pages > 0) pages_ = run.number(pages - 1);
  return run;
}

void PageFile::write(const PageRun& run, std::span<const std::byte> pages) const {
  assert(pages.size() % size_.bytes == 0);
  const std::size_t count = pages.size() / size_.bytes;
  const std::size_t before = std::min(count, run.before_jump());
  if (before > 0) write(run.number(0), pages.first(before * size_.bytes));
  if (before < count) write(run.number(before), pages.subspan(before * size_.bytes));
}

void PageFile::write(std::uint32_t page, std::span<const std::byte> bytes) const {
  // Page 1 has the header, which SQLite and finish() write.
  assert(page > 1 && page != lock_page_ && bytes.size() % size_.bytes == 0);
  write_at(std::uint64_t{page - 1} * size_.bytes, bytes);
}

void PageFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  const std::uint64_t before = written_.fetch_add(bytes.size(), std::memory_order_relaxed);
  const bool is_due = before / kSyncEvery != (before + bytes.size()) / kSyncEvery;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(put < 0 ? errno : ENOSPC);
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  // The disk has something to do meanwhile, and the sync at the end little. What
  // fails is told there.
  if (is_due) (void)::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void PageFile::finish() {
  std::array<std::byte, kHeaderBytes + 8> header{};  // put_big_endian() writes 8 bytes
  if (::pread(fd_, header.data(), kHeaderBytes, 0) != static_cast<ssize_t>(kHeaderBytes)) {
    fail(EIO);
  }
  const auto set = [&header](std::size_t at, std::uint32_t value) {
    std::array<std::byte, 8> bytes{};
    put_big_endian(bytes.data(), value, sizeof(value));
    std::memcpy(header.data() + at, bytes.data(), sizeof(value));
  };
  // A connection that has read the file sees by the counter that it changed.
  const std::uint32_t change = number_at(header, kChangeCounterAt) + 1;
  set(kChangeCounterAt, change);
  set(kPagesAt, pages_);
  set(kValidForAt, change);
  write_at(0, std::span(header).first(kHeaderBytes));
}

}  // namespace wbscope
