// SPDX-License-Identifier: Apache-2.0
// PageSource: the pages of one CPU in file order, decompressed piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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

  // The next pages, a whole number of them; valid until the next call in this
  // thread, of any PageSource: they share what they need to decompress.
  // Nothing at the end. After damage: nothing, and damage() says what it was.
  [[nodiscard]] std::optional<std::span<const std::byte>> next();

  // Before the first next(): moves to the last piece whose first page has a
  // stamp that is_before. Stamps are taken to rise from page to page, so only
  // a few pages are looked at; where one cannot be read, nothing is skipped.
  void skip_while(const std::function<bool(std::uint64_t stamp)>& is_before);

  // The reader took only so many pages of the last piece. Returns with which
  // page of the next piece it goes on: a compressed piece comes again whole.
  [[nodiscard]] std::size_t give_back(std::size_t pages_taken);
  // Called between reads: where there are many CPUs, gives up what was read ahead.
  void release();

  // Counts what became of the pages. Raises: Error (exit 3) when too much comes
  // out of too little.
  void note_records(std::uint64_t records);

  [[nodiscard]] const std::optional<Message>& damage() const noexcept { return damage_; }
  // Bytes of the file consumed so far, for progress.
  [[nodiscard]] std::uint64_t consumed() const noexcept { return at_ - region_.offset; }
  // File offset of the piece that next() gave last.
  [[nodiscard]] std::uint64_t piece_offset() const noexcept { return piece_offset_; }

 private:
  [[nodiscard]] std::optional<std::span<const std::byte>> next_chunk();
  [[nodiscard]] std::optional<std::span<const std::byte>> next_window();
  // Whether a header of a chunk makes sense.
  [[nodiscard]] bool is_chunk(std::uint32_t packed, std::uint32_t unpacked) const noexcept;
  [[nodiscard]] std::vector<std::uint64_t> chunk_offsets() const;
  [[nodiscard]] std::optional<std::uint64_t> stamp_of_chunk(std::uint64_t offset);
  [[nodiscard]] std::optional<std::uint64_t> stamp_of_page(std::uint64_t offset) const;
  void check_rest();
  std::nullopt_t stop(const char* code, const std::string& detail);

  const InputFile& file_;
  ByteOrder order_;
  std::uint32_t page_bytes_;
  bool compressed_;
  std::shared_ptr<UnpackBudget> budget_;
  CpuRegion region_;
  std::uint64_t at_;
  std::uint64_t piece_offset_;
  std::optional<std::uint32_t> chunks_left_;
  Compression compression_;
  std::size_t read_bytes_;
  std::vector<std::byte> packed_;
  std::size_t packed_begin_ = 0;
  std::size_t packed_end_ = 0;
  std::optional<Message> damage_;

  [[nodiscard]] const std::byte* buffered(std::size_t bytes);
};

}  // namespace wbscope
