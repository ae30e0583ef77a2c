// SPDX-License-Identifier: Apache-2.0
// UnpackBudget: how much may come out of a compressed file for what is in it.
#pragma once

#include <atomic>
#include <cstdint>

namespace wbscope {

// 230 KB of zstd can hold 5 GB of pages and 267 million records. Recorded traces
// are far below these limits: 7 bytes of pages come out of one, and 6 bytes hold
// one record; pages with one record each and nothing else shrink 200 times.
// Shared by the threads that read.
class UnpackBudget {
 public:
  static constexpr std::uint64_t kFreeBytes = 256u << 20;   // of pages
  static constexpr std::uint64_t kMostBytes = 1000;         // of pages for one in the file
  static constexpr std::uint64_t kFreeRecords = 4u << 20;
  static constexpr std::uint64_t kMostRecords = 16;         // for one byte in the file

  void lift() noexcept { is_lifted_ = true; }
  void add_bytes(std::uint64_t packed, std::uint64_t unpacked) noexcept {
    packed_ += packed;
    unpacked_ += unpacked;
  }
  void add_records(std::uint64_t records) noexcept { records_ += records; }

  [[nodiscard]] std::uint64_t packed() const noexcept { return packed_; }
  [[nodiscard]] std::uint64_t unpacked() const noexcept { return unpacked_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] bool is_exceeded() const noexcept {
    if (is_lifted_) return false;
    return (unpacked_ > kFreeBytes && unpacked_ / kMostBytes > packed_) ||
           (records_ > kFreeRecords && records_ / kMostRecords > packed_);
  }

 private:
  bool is_lifted_ = false;
  std::atomic<std::uint64_t> packed_ = 0;
  std::atomic<std::uint64_t> unpacked_ = 0;
  std::atomic<std::uint64_t> records_ = 0;
};

}  // namespace wbscope
