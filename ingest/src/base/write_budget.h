// SPDX-License-Identifier: Apache-2.0
// WriteBudget: how long an output may get for what is read.
#pragma once

#include <cstdint>
#include <string>

namespace wbscope {

// A short record can become a long row: many of its fields may lie on the same bytes,
// or point to the same text. Recorded traces are far below these limits: 8 bytes came of
// one of zstd, in any job, and 160 of one where the same pages came again and again.
class WriteBudget {
 public:
  static constexpr std::uint64_t kFreeBytes = 256u << 20;
  static constexpr std::uint64_t kMostBytes = 400;  // for one that is read

  // source: what error messages call the input; fix: how to go on all the same.
  WriteBudget(std::string source, std::string fix, std::uint64_t free_bytes = kFreeBytes)
      : source_(std::move(source)), fix_(std::move(fix)), free_bytes_(free_bytes) {}

  void lift() noexcept { is_lifted_ = true; }
  void add_read(std::uint64_t bytes) noexcept { read_ += bytes; }

  // Bytes of the output.
  [[nodiscard]] std::uint64_t most() const noexcept;
  // Raises: Error (exit 3) when an output of so many bytes is too long.
  void check(std::uint64_t bytes) const {
    if (bytes > most()) [[unlikely]] refuse();
  }
  [[noreturn]] void refuse() const;

 private:
  std::string source_;
  std::string fix_;
  std::uint64_t free_bytes_;
  std::uint64_t read_ = 0;
  bool is_lifted_ = false;
};

// The fix of the jobs that have the option.
[[nodiscard]] std::string lift_limit(const std::string& source);

}  // namespace wbscope
