// SPDX-License-Identifier: Apache-2.0
// InputFile: positioned reads of a file, safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wbscope {

// Reads by pread, not mmap: a file that is cut short while it is read then
// gives an error instead of SIGBUS.
class InputFile {
 public:
  // Raises: Error (exit 3) when path is no readable regular file; Error (exit
  // 5) when this machine has no descriptor or memory left to open it.
  explicit InputFile(std::string path);
  // Bytes in memory under a name, for tests. Pre: they outlive this object.
  InputFile(std::string name, std::span<const std::byte> bytes)
      : path_(std::move(name)), size_(bytes.size()), memory_(bytes) {}
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  // Fills as much of out as the file has at offset; returns the count of bytes.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> out) const;

  // Where the open file lies, whatever links led to it; empty when not known.
  [[nodiscard]] std::string real_path() const;

  // How the file differs from what it was when it was opened; empty when it
  // does not. A file that was renamed or removed is still the same.
  [[nodiscard]] std::string change() const;

  // XXH3-64 of the whole file, as 16 hexadecimal digits.
  [[nodiscard]] std::string hash() const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t modified_ns_ = 0;
  std::span<const std::byte> memory_;  // used when there is no fd_
};

// The place of the first byte in [begin, end) that is not 0, as far as the file
// goes; looks at 1 MiB at most.
[[nodiscard]] std::optional<std::uint64_t> first_nonzero(const InputFile& file,
                                                         std::uint64_t begin, std::uint64_t end);

// A whole small text file. Raises: Error (exit 3) when it is larger than max, or
// not within the folder, where one is given.
[[nodiscard]] std::string read_text_file(const std::string& path, std::size_t max,
                                         const std::string& folder = {});

}  // namespace wbscope
