// SPDX-License-Identifier: Apache-2.0
// PageSource: the pages of one CPU in file order, decompressed piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"
#include "tracedat/decompress.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// Holds one chunk (compressed files) or a window of pages at a time, so that
// memory does not grow with the file.
class PageSource {
 public:
  PageSource(const InputFile& file, const TraceInfo& info, const BufferInfo& buffer,
             const CpuRegion& region);

  // The next pages, a whole number of them; valid until the next call.
  // Nothing at the end. After damage: nothing, and damage() says what it was.
  [[nodiscard]] std::optional<std::span<const std::byte>> next();

  // Before the first next(): moves to the last piece whose first page has a
  // stamp that is_before. Stamps are taken to rise from page to page, so only
  // a few pages are looked at; where one cannot be read, nothing is skipped.
  void skip_while(const std::function<bool(std::uint64_t stamp)>& is_before);

  [[nodiscard]] const std::optional<Message>& damage() const noexcept { return damage_; }
  // Bytes of the file consumed so far, for progress.
  [[nodiscard]] std::uint64_t consumed() const noexcept { return at_ - region_.offset; }
  // File offset of the piece that next() gave last.
  [[nodiscard]] std::uint64_t piece_offset() const noexcept { return piece_offset_; }

 private:
  [[nodiscard]] std::optional<std::span<const std::byte>> next_chunk();
  [[nodiscard]] std::optional<std::span<const std::byte>> next_window();
  [[nodiscard]] std::vector<std::uint64_t> chunk_offsets() const;
  [[nodiscard]] std::optional<std::uint64_t> stamp_of_chunk(std::uint64_t offset);
  [[nodiscard]] std::optional<std::uint64_t> stamp_of_page(std::uint64_t offset) const;
  std::nullopt_t stop(const char* code, const std::string& detail);

  const InputFile& file_;
  ByteOrder order_;
  std::uint32_t page_bytes_;
  bool compressed_;
  CpuRegion region_;
  std::uint64_t at_;
  std::uint64_t piece_offset_;
  std::optional<std::uint32_t> chunks_left_;
  Decompressor decompressor_;
  std::vector<std::byte> packed_;
  std::size_t packed_begin_ = 0;
  std::size_t packed_end_ = 0;
  std::vector<std::byte> pages_;
  std::optional<Message> damage_;

  [[nodiscard]] const std::byte* buffered(std::size_t bytes);
};

}  // namespace wbscope
