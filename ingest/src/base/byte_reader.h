// SPDX-License-Identifier: Apache-2.0
// ByteReader: the only door through which bytes of a file are read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace wbscope {

// The bytes of an object as those that C has: the one place where they are cast.
[[nodiscard]] inline const char* as_chars(const void* bytes) noexcept {
  return static_cast<const char*>(bytes);
}
[[nodiscard]] inline const unsigned char* as_unsigned(const void* bytes) noexcept {
  return static_cast<const unsigned char*>(bytes);
}
[[nodiscard]] inline unsigned char* as_unsigned(void* bytes) noexcept {
  return static_cast<unsigned char*>(bytes);
}

enum class ByteOrder : std::uint8_t { kLittle, kBig };

constexpr ByteOrder kHostOrder =
    std::endian::native == std::endian::little ? ByteOrder::kLittle : ByteOrder::kBig;

// Loads one integer in the given byte order.
// Pre: data has at least sizeof(T) bytes.
template <typename T>
[[nodiscard]] inline T load(const std::byte* data, ByteOrder order) noexcept {
  static_assert(std::is_integral_v<T>);
  std::make_unsigned_t<T> value;
  std::memcpy(&value, data, sizeof(T));
  if (order != kHostOrder) {
    if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
  }
  return static_cast<T>(value);
}

// A bounds-checked cursor over a span. A read that does not fit returns
// nothing and leaves the cursor where it was.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> data, ByteOrder order) noexcept
      : data_(data), order_(order) {}

  [[nodiscard]] std::size_t position() const noexcept { return position_; }
  [[nodiscard]] std::size_t left() const noexcept { return data_.size() - position_; }
  [[nodiscard]] ByteOrder order() const noexcept { return order_; }

  // Moves to an absolute position; false when it lies behind the end.
  [[nodiscard]] bool seek(std::size_t position) noexcept {
    if (position > data_.size()) return false;
    position_ = position;
    return true;
  }

  template <typename T>
  [[nodiscard]] std::optional<T> read() noexcept {
    if (left() < sizeof(T)) return std::nullopt;
    const T value = load<T>(data_.data() + position_, order_);
    position_ += sizeof(T);
    return value;
  }

  // The next count bytes, as a view into the data.
  [[nodiscard]] std::optional<std::span<const std::byte>> take(std::size_t count) noexcept {
    if (left() < count) return std::nullopt;
    const auto view = data_.subspan(position_, count);
    position_ += count;
    return view;
  }

  // The text before the next NUL; the cursor moves behind the NUL.
  // Nothing when no NUL is found within max bytes.
  [[nodiscard]] std::optional<std::string_view> cstring(std::size_t max) noexcept {
    const std::size_t span = std::min(max, left());
    const auto* begin = data_.data() + position_;
    const auto* end = std::find(begin, begin + span, std::byte{0});
    if (end == begin + span) return std::nullopt;
    const auto length = static_cast<std::size_t>(end - begin);
    position_ += length + 1;
    return std::string_view(as_chars(begin), length);
  }

 private:
  std::span<const std::byte> data_;
  std::size_t position_ = 0;
  ByteOrder order_;
};

// A view of bytes as text, for handing to parsers of text.
[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {as_chars(bytes.data()), bytes.size()};
}

}  // namespace wbscope
