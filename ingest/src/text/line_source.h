// SPDX-License-Identifier: Apache-2.0
// LineSource: lines of a text of any size, in little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace wbscope {

class LineSource {
 public:
  // Longer lines are cut: no event prints that much.
  static constexpr std::size_t kMaxLine = 64u << 10;

  // read fills a part of what it is given; 0 is the end of the text.
  explicit LineSource(std::function<std::size_t(std::span<std::byte>)> read);

  // The next line without its newline and without NUL bytes (holes that a
  // crash left in the file). False at the end.
  [[nodiscard]] bool next(std::string_view& line);

  [[nodiscard]] std::uint64_t consumed() const noexcept { return consumed_; }
  [[nodiscard]] std::uint64_t cut_lines() const noexcept { return cut_lines_; }

 private:
  bool refill();

  std::function<std::size_t(std::span<std::byte>)> read_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool at_end_ = false;
  bool skipping_ = false;  // the rest of a line that was cut
  std::uint64_t consumed_ = 0;
  std::uint64_t cut_lines_ = 0;
};

// Whether the start of a file is text rather than some binary format.
[[nodiscard]] bool looks_like_text(std::span<const std::byte> start) noexcept;

}  // namespace wbscope
