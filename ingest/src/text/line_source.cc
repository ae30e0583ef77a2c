// SPDX-License-Identifier: Apache-2.0
// Lines of a text of any size.
#include "text/line_source.h"

#include <algorithm>
#include <cstring>

namespace wbscope {
namespace {

constexpr std::size_t kBufferBytes = 1u << 20;

}  // namespace

LineSource::LineSource(std::function<std::size_t(std::span<std::byte>)> read)
    : read_(std::move(read)), buffer_(kBufferBytes) {}

// Moves what is left to the front and reads more behind it.
bool LineSource::refill() {
  if (at_end_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto room = std::as_writable_bytes(std::span(buffer_)).subspan(end_);
  const std::size_t got = read_(room);
  at_end_ = got == 0;
  end_ += got;
  consumed_ += got;
  return !at_end_;
}

bool LineSource::next(std::string_view& line) {
  while (true) {
    const char* start = buffer_.data() + begin_;
    const std::size_t have = end_ - begin_;
    const void* newline = std::memchr(start, '\n', have);
    std::size_t size = newline == nullptr
                           ? have
                           : static_cast<std::size_t>(static_cast<const char*>(newline) - start);
    if (newline == nullptr && have < kMaxLine && refill()) continue;
    if (newline == nullptr && have == 0 && at_end_) return false;
    const bool is_cut = newline == nullptr ? have >= kMaxLine : size > kMaxLine;
    const bool is_rest = skipping_;
    skipping_ = newline == nullptr && !at_end_;
    begin_ += size + (newline == nullptr ? 0 : 1);
    if (is_rest) continue;
    if (is_cut) ++cut_lines_;
    size = std::min(size, kMaxLine);
    if (std::memchr(start, '\0', size) != nullptr) {
      // In place: these bytes have been consumed.
      char* text = buffer_.data() + (start - buffer_.data());
      size = static_cast<std::size_t>(std::remove(text, text + size, '\0') - text);
    }
    line = std::string_view(start, size);
    return true;
  }
}

bool looks_like_text(std::span<const std::byte> start) noexcept {
  constexpr std::size_t kMagicBytes = 16;  // no binary format starts with that much text
  std::size_t seen = 0;
  std::size_t control = 0;
  for (const std::byte b : start) {
    const auto c = static_cast<unsigned char>(b);
    if (c == 0) continue;  // a hole
    ++seen;
    if (c >= 0x20 || c == '\t' || c == '\n' || c == '\r' || c == 0x1b) continue;
    if (seen <= kMagicBytes) return false;
    ++control;
  }
  return seen > 0 && control * 20 <= seen;
}

}  // namespace wbscope
