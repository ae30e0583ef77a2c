// SPDX-License-Identifier: Apache-2.0
// Chunks of compressed pages, and the records of one page.
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/input_file.h"
#include "targets.h"
#include "tracedat/decompress.h"
#include "tracedat/page_source.h"
#include "tracedat/page_walker.h"

namespace wbscope::fuzz {
namespace {

template <ByteOrder kOrder>
void walk(Bytes page, const PageLayout& layout) {
  Counters counters;
  std::size_t behind_last = layout.data_offset;
  const auto result =
      walk_page<kOrder>(page, layout, counters, [&](std::uint64_t, Bytes record) {
        const auto start = static_cast<std::size_t>(record.data() - page.data());
        require(start >= behind_last);
        behind_last = start + record.size();
        require(behind_last <= page.size());
      });
  require(result.is_page || (!result.lost && result.bad_offset == 0));
  require(result.bad_offset <= page.size());
  require(result.complete == (result.bad_offset == 0));
}

Compression compression_of(std::uint8_t choices) {
  if ((choices & 2) == 0) return Compression::kZstd;
  return (choices & 4) == 0 ? Compression::kZlib : Compression::kNone;
}

}  // namespace

// Input: a byte of choices, then a page. It is copied, so that its end is the
// end of an allocation.
void page_walk(Bytes input) {
  const std::uint8_t choices = take_byte(input);
  const std::vector<std::byte> page(input.begin(), input.end());
  PageLayout layout;
  layout.commit_bytes = (choices & 2) != 0 ? 4 : 8;
  layout.data_offset = layout.commit_offset + layout.commit_bytes;
  if ((choices & 1) != 0) {
    walk<ByteOrder::kBig>(page, layout);
  } else {
    walk<ByteOrder::kLittle>(page, layout);
  }
}

// Input: a byte of choices, then what a file holds of one CPU.
void chunks(Bytes input) {
  const std::uint8_t choices = take_byte(input);
  TraceInfo info;
  info.order = (choices & 1) != 0 ? ByteOrder::kBig : ByteOrder::kLittle;
  info.compression = compression_of(choices);
  BufferInfo buffer;
  buffer.page_bytes = (choices & 8) != 0 ? 512 : 4096;
  buffer.compressed = (choices & 16) == 0;
  const CpuRegion region{.cpu = 0, .offset = 0, .bytes = input.size(), .file = {}};
  const InputFile file("fuzz", input);
  PageSource source(file, info, buffer, region);
  while (const auto pages = source.next()) {
    require(!pages->empty() && pages->size() % buffer.page_bytes == 0);
    require(pages->size() <= kMaxChunkBytes);
    require(source.consumed() <= input.size() && source.piece_offset() <= input.size());
  }
  require(!source.next());  // an end stays an end

  std::vector<std::byte> out((choices >> 5) * std::size_t{512});
  (void)Decompressor(info.compression).run(input, out);
}

}  // namespace wbscope::fuzz
