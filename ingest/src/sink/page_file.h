// SPDX-License-Identifier: Apache-2.0
// PageFile: pages of an SQLite database that are written past SQLite
// (https://sqlite.org/fileformat2.html, "Pages", "The Database Header").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/write_budget.h"

namespace wbscope {

struct PageSize {
  std::size_t bytes = 0;
  std::size_t usable = 0;  // without what is reserved at the end of each page
};

// Pages with numbers in a row, but for the page that SQLite locks bytes of: no
// database uses it.
class PageRun {
 public:
  PageRun() = default;
  PageRun(std::uint32_t first, std::uint32_t lock_page) noexcept
      : first_(first + (first == lock_page ? 1 : 0)), lock_page_(lock_page) {}

  [[nodiscard]] std::uint32_t number(std::size_t index) const noexcept {
    const auto plain = first_ + static_cast<std::uint32_t>(index);
    return plain + (first_ < lock_page_ && plain >= lock_page_ ? 1 : 0);
  }
  // Pages from the first on until the numbers make a jump.
  [[nodiscard]] std::size_t before_jump() const noexcept {
    return first_ < lock_page_ ? lock_page_ - first_ : SIZE_MAX;
  }

 private:
  std::uint32_t first_ = 0;
  std::uint32_t lock_page_ = 0;
};

// SQLite must not write to the file while pages are added: what it has begun is
// committed before, and its next transaction begins after finish().
class PageFile {
 public:
  static constexpr std::uint64_t kLockByte = 0x40000000;

  // path: of a database; name is what error messages call it. lock_byte is
  // another one only in tests.
  // Raises: Error, exit 5.
  PageFile(const std::string& path, std::string name, std::uint64_t lock_byte = kLockByte);
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  [[nodiscard]] const PageSize& page_size() const noexcept { return size_; }

  // How long the file may get, from now on. The budget outlives this.
  void limit_size(const WriteBudget& budget) noexcept { budget_ = &budget; }

  // New pages at the end of the file. Raises: Error when it would get too large.
  [[nodiscard]] PageRun allocate(std::size_t pages);

  // Several threads may write at a time. Pre: whole pages, of the run from its
  // first page on; the page is there. Raises: Error, exit 5.
  void write(const PageRun& run, std::span<const std::byte> pages) const;
  void write(std::uint32_t page, std::span<const std::byte> bytes) const;

  // Tells the header how many pages there are.
  void finish();

 private:
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  [[noreturn]] void fail(int error_number) const;

  std::string name_;
  int fd_ = -1;
  const WriteBudget* budget_ = nullptr;
  PageSize size_;
  std::uint32_t pages_ = 0;
  std::uint32_t lock_page_ = 0;
  mutable std::atomic<std::uint64_t> written_ = 0;  // bytes
};

}  // namespace wbscope
