// SPDX-License-Identifier: Apache-2.0
// RecordEncoder: the values of a row as SQLite stores them
// (https://sqlite.org/fileformat2.html, "Record Format").
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace wbscope {

constexpr std::size_t kMaxVarintBytes = 9;

// Big-endian, seven bits a byte, all eight of the ninth. Returns the bytes it took.
// Pre: room for kMaxVarintBytes at `at`.
inline std::size_t put_varint(std::byte* at, std::uint64_t value) noexcept {
  if (value < 0x80) [[likely]] {
    at[0] = static_cast<std::byte>(value);
    return 1;
  }
  if (value < 0x4000) {
    at[0] = static_cast<std::byte>(value >> 7 | 0x80);
    at[1] = static_cast<std::byte>(value & 0x7f);
    return 2;
  }
  if (value >> 56 != 0) {
    at[8] = static_cast<std::byte>(value & 0xff);
    value >>= 8;
    for (std::size_t i = 8; i-- > 0; value >>= 7) at[i] = static_cast<std::byte>(value | 0x80);
    return kMaxVarintBytes;
  }
  const auto bytes = static_cast<std::size_t>(std::bit_width(value) + 6) / 7;
  for (std::size_t i = bytes; i-- > 0; value >>= 7) {
    at[i] = static_cast<std::byte>((value & 0x7f) | (i + 1 < bytes ? 0x80 : 0));
  }
  return bytes;
}

[[nodiscard]] inline std::size_t varint_bytes(std::uint64_t value) noexcept {
  if (value >> 56 != 0) return kMaxVarintBytes;
  return static_cast<std::size_t>(std::bit_width(value | 1) + 6) / 7;
}

// The low `bytes` of value, the highest first. Pre: room for 8 bytes at `at`.
inline void put_big_endian(std::byte* at, std::uint64_t value, unsigned bytes) noexcept {
  assert(bytes >= 1 && bytes <= 8);
  if constexpr (std::endian::native == std::endian::little) {
    value = __builtin_bswap64(value << (64 - 8 * bytes));
  } else {
    value <<= 64 - 8 * bytes;
  }
  std::memcpy(at, &value, sizeof(value));
}

// One row after the other, each of less than a billion bytes (Error); values in
// the order of the table's columns. The INTEGER PRIMARY KEY is a null(): its
// value is the row's number.
class RecordEncoder {
 public:
  void begin_row() noexcept {
    types_used_ = 0;
    body_used_ = 0;
  }

  void null() {
    reserve(0);
    types_[types_used_++] = std::byte{0};
  }
  void integer(std::int64_t value) {
    reserve(sizeof(value));
    // Bits without the sign, of the smallest width that holds them.
    const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
    if (magnitude <= 1 && value >= 0) {
      types_[types_used_++] = static_cast<std::byte>(8 + value);
      return;
    }
    const Width width = kWidths[static_cast<std::size_t>(std::bit_width(magnitude))];
    types_[types_used_++] = static_cast<std::byte>(width.type);
    assert(body_used_ + sizeof(std::uint64_t) <= body_.size());
    put_big_endian(body_.data() + body_used_, static_cast<std::uint64_t>(value), width.bytes);
    body_used_ += width.bytes;
  }
  // SQLite has no NaN: it stores a NULL.
  void real(double value) {
    if (value != value) return null();
    reserve(sizeof(value));
    types_[types_used_++] = std::byte{7};
    put_big_endian(body_.data() + body_used_, std::bit_cast<std::uint64_t>(value), 8);
    body_used_ += sizeof(value);
  }
  void text(std::string_view value) {
    put_bytes(13, std::as_bytes(std::span(value.data(), value.size())));
  }
  void blob(std::span<const std::byte> value) { put_bytes(12, value); }

  // Lets go of what a long row took.
  void shrink() {
    if (body_.size() > kMostKept) body_ = std::vector<std::byte>(1024);
  }

  // Of the whole record.
  [[nodiscard]] std::size_t size() const noexcept { return header_bytes() + body_used_; }
  // Writes it. Pre: room for size() + kMaxVarintBytes at `at`.
  void put(std::byte* at) const noexcept {
    assert(types_used_ <= types_.size() && body_used_ <= body_.size());
    assert(types_used_ <= types_.size() && body_used_ <= body_.size());
    const std::size_t size_bytes = put_varint(at, header_bytes());
    std::memcpy(at + size_bytes, types_.data(), types_used_);
    if (body_used_ > 0) std::memcpy(at + size_bytes + types_used_, body_.data(), body_used_);
  }

 private:
  // Of a row, as SQLITE_MAX_LENGTH; its readers take no more.
  static constexpr std::size_t kMostBytes = 1'000'000'000 - 65536;
  static constexpr std::size_t kMostKept = 1u << 20;
  [[noreturn]] static void throw_too_large();

  struct Width {
    std::uint8_t type;
    std::uint8_t bytes;
  };
  static constexpr std::array<Width, 65> kWidths = [] {
    std::array<Width, 65> widths{};
    for (std::size_t bits = 0; bits < widths.size(); ++bits) {
      widths[bits] = bits < 8    ? Width{1, 1}
                     : bits < 16 ? Width{2, 2}
                     : bits < 24 ? Width{3, 3}
                     : bits < 32 ? Width{4, 4}
                     : bits < 48 ? Width{5, 6}
                                 : Width{6, 8};
    }
    return widths;
  }();

  void put_bytes(std::uint64_t first_type, std::span<const std::byte> value) {
    reserve(value.size());
    types_used_ += put_varint(types_.data() + types_used_, first_type + 2 * value.size());
    if (!value.empty()) std::memcpy(body_.data() + body_used_, value.data(), value.size());
    body_used_ += value.size();
  }
  // The header holds its own size.
  [[nodiscard]] std::size_t header_bytes() const noexcept {
    std::size_t bytes = types_used_ + 1;
    while (types_used_ + varint_bytes(bytes) > bytes) ++bytes;
    return bytes;
  }
  // For one more value; put_big_endian() writes 8 bytes, whatever the width.
  void reserve(std::size_t bytes) {
    if (body_used_ + bytes > kMostBytes) [[unlikely]] throw_too_large();
    if (types_.size() < types_used_ + kMaxVarintBytes) {
      types_.resize(2 * types_.size() + kMaxVarintBytes);
    }
    if (body_.size() < body_used_ + bytes + sizeof(std::uint64_t)) {
      body_.resize(2 * body_.size() + bytes + sizeof(std::uint64_t));
    }
  }

  std::vector<std::byte> types_ = std::vector<std::byte>(64);
  std::vector<std::byte> body_ = std::vector<std::byte>(1024);
  std::size_t types_used_ = 0;
  std::size_t body_used_ = 0;
};

}  // namespace wbscope
