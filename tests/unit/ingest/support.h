// SPDX-License-Identifier: Apache-2.0
// What the tests share: a temporary directory, bytes in either order, errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/error.h"

namespace wbscope {
class Database;
}

namespace wbscope::testing {

// A new directory, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string path(std::string_view name) const;
  // The names of the files in it, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  // Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view content) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);

// What a statement answers: "a|NULL b|2".
[[nodiscard]] std::string rows(Database& db, const std::string& sql);

// Bytes one after the other, integers in the given order.
class Bytes {
 public:
  explicit Bytes(ByteOrder order) : order_(order) {}

  Bytes& u8(std::uint64_t value) { return integer(value, 1); }
  Bytes& u16(std::uint64_t value) { return integer(value, 2); }
  Bytes& u32(std::uint64_t value) { return integer(value, 4); }
  Bytes& u64(std::uint64_t value) { return integer(value, 8); }
  Bytes& integer(std::uint64_t value, unsigned bytes);
  Bytes& text(std::string_view text) {
    data_ += text;
    return *this;
  }
  // The text and a NUL.
  Bytes& cstring(std::string_view value) { return text(value).u8(0); }
  // NULs up to a size, or up to the next multiple of it.
  Bytes& pad_to(std::size_t size) {
    if (data_.size() < size) data_.resize(size, '\0');
    return *this;
  }
  Bytes& align(std::size_t size) { return pad_to((data_.size() + size - 1) / size * size); }
  // Overwrites 8 bytes.
  void set_u64(std::size_t at, std::uint64_t value);

  [[nodiscard]] std::size_t size() const { return data_.size(); }
  [[nodiscard]] ByteOrder order() const { return order_; }
  [[nodiscard]] const std::string& str() const { return data_; }
  [[nodiscard]] std::span<const std::byte> span() const {
    return std::as_bytes(std::span(data_.data(), data_.size()));
  }

 private:
  ByteOrder order_;
  std::string data_;
};

// The Error that action throws; nothing when it throws none.
template <typename Action>
[[nodiscard]] std::optional<Error> error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// kernel-tracepoints/formats/<kernel>/<system>/<event>.format
[[nodiscard]] std::string kernel_format(std::string_view kernel, std::string_view system,
                                        std::string_view event);

}  // namespace wbscope::testing
