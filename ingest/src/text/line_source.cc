// SPDX-License-Identifier: Apache-2.0
// Lines of a text of any size.
#include "text/line_source.h"

#include <algorithm>
#include <array>
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
    if (newline == nullptr && have < kMaxLine) {
      if (refill()) continue;
      start = buffer_.data() + begin_;  // moved to the front, though nothing came behind it
    }
    if (newline == nullptr && have == 0 && at_end_) return false;
    const bool is_rest = skipping_;
    skipping_ = newline == nullptr && !at_end_;
    is_unended_ = newline == nullptr;
    begin_ += size + (newline == nullptr ? 0 : 1);
    if (!is_rest) {
      ++line_;
      is_line_cut_ = false;
    }
    if (std::memchr(start, '\0', size) != nullptr) {
      // In place: these bytes have been consumed.
      char* text = buffer_.data() + (start - buffer_.data());
      const auto kept = static_cast<std::size_t>(std::remove(text, text + size, '\0') - text);
      if (nul_bytes_ == 0) first_nul_line_ = line_;
      nul_bytes_ += size - kept;
      size = kept;
    }
    if (!is_line_cut_ && size > (is_rest ? 0 : kMaxLine)) {
      is_line_cut_ = true;
      if (cut_lines_++ == 0) first_cut_line_ = line_;
    }
    if (is_rest) continue;
    size = std::min(size, kMaxLine);
    line = std::string_view(start, size);
    return true;
  }
}

std::string_view wide_encoding(std::span<const std::byte> start) noexcept {
  // Of each four bytes, how often each is NUL: most characters are ASCII.
  const std::size_t groups = start.size() / 4;
  std::array<std::size_t, 4> zeros{};
  for (std::size_t i = 0; i < groups * 4; ++i) zeros[i % 4] += start[i] == std::byte{0} ? 1 : 0;
  const auto mostly = [&](std::size_t place) { return zeros[place] * 10 >= groups * 9; };
  const auto rarely = [&](std::size_t place) { return zeros[place] * 10 <= groups; };
  constexpr std::size_t kEnough = 4;
  if (groups >= kEnough) {
    if (mostly(1) && mostly(2) && (rarely(0) != rarely(3))) return "UTF-32";
    if (rarely(0) && mostly(1) && rarely(2) && mostly(3)) return "UTF-16";
    if (mostly(0) && rarely(1) && mostly(2) && rarely(3)) return "UTF-16";
  }
  if (start.size() < 2) return {};
  const bool little = start[0] == std::byte{0xff} && start[1] == std::byte{0xfe};
  const bool big = start[0] == std::byte{0xfe} && start[1] == std::byte{0xff};
  return little || big ? "UTF-16" : std::string_view{};
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
