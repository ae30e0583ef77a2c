// SPDX-License-Identifier: Apache-2.0
// ProtoBuffer: bytes of protobuf messages, appended without a check for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <protozero/varint.hpp>
#include <string_view>
#include <vector>

namespace wbscope {

class ProtoBuffer {
 public:
  // Of a field's number, and of a varint.
  static constexpr std::size_t kMaxTag = 5, kMaxVarint = protozero::max_varint_length;

  void clear() noexcept { size_ = 0; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  // Gives memory back that one large record needed.
  void shrink(std::size_t most) {
    if (bytes_.size() > most && size_ <= most) {
      bytes_.resize(most);
      bytes_.shrink_to_fit();
    }
  }

  void number(std::uint32_t field, std::uint64_t value) {
    char* at = room(kMaxTag + kMaxVarint);
    at = varint(at, field << 3);
    take(varint(at, value));
  }
  void bytes(std::uint32_t field, std::string_view value) {
    head(field, value.size());
    raw(value);
  }
  // Tag and length of a field whose bytes come next.
  void head(std::uint32_t field, std::size_t length) {
    char* at = room(kMaxTag + kMaxVarint);
    at = varint(at, field << 3 | 2u);
    take(varint(at, length));
  }
  void raw(std::string_view value) {
    char* at = room(value.size());
    if (!value.empty()) std::memcpy(at, value.data(), value.size());
    size_ += value.size();
  }

 private:
  [[nodiscard]] char* room(std::size_t count) {
    if (bytes_.size() - size_ < count) [[unlikely]] bytes_.resize(2 * (size_ + count));
    return bytes_.data() + size_;
  }
  void take(const char* end) noexcept { size_ = static_cast<std::size_t>(end - bytes_.data()); }
  static char* varint(char* at, std::uint64_t value) noexcept {
    return at + protozero::add_varint_to_buffer(at, value);
  }

  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

}  // namespace wbscope
