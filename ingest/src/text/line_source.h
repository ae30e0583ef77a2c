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
  // NUL bytes that were left out of lines.
  [[nodiscard]] std::uint64_t nul_bytes() const noexcept { return nul_bytes_; }
  // The numbers of the first lines that were cut or had NUL bytes; 0 for none.
  [[nodiscard]] std::uint64_t first_cut_line() const noexcept { return first_cut_line_; }
  [[nodiscard]] std::uint64_t first_nul_line() const noexcept { return first_nul_line_; }
  // The last line had no newline.
  [[nodiscard]] bool is_unended() const noexcept { return is_unended_; }

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
  std::uint64_t nul_bytes_ = 0;
  std::uint64_t line_ = 0;
  std::uint64_t first_cut_line_ = 0;
  std::uint64_t first_nul_line_ = 0;
  bool is_unended_ = false;
  bool is_line_cut_ = false;
};

// "UTF-16" or "UTF-32" when the start of a file is text in one of them, else "".
[[nodiscard]] std::string_view wide_encoding(std::span<const std::byte> start) noexcept;

// Whether the start of a file is text rather than some binary format.
[[nodiscard]] bool looks_like_text(std::span<const std::byte> start) noexcept;

}  // namespace wbscope
