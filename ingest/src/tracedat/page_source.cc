// SPDX-License-Identifier: Apache-2.0
// Pages of one CPU (trace-cmd.dat.v7(5), COMPRESSION FORMAT OF THE TRACE DATA).
#include "tracedat/page_source.h"

#include <algorithm>
#include <cstring>

namespace wbscope {
namespace {

// One for each thread, not for each CPU: a thousand CPUs would need hundreds
// of MiB.
Decompressor& decompressor(Compression compression) {
  static thread_local Decompressor zstd(Compression::kZstd);
  static thread_local Decompressor zlib(Compression::kZlib);
  static thread_local Decompressor none(Compression::kNone);
  switch (compression) {
    case Compression::kZstd:
      return zstd;
    case Compression::kZlib:
      return zlib;
    case Compression::kNone:
      break;
  }
  return none;
}

std::vector<std::byte>& thread_pages() {
  static thread_local std::vector<std::byte> pages;
  return pages;
}

}  // namespace

PageSource::PageSource(const InputFile& file, const TraceInfo& info, const BufferInfo& buffer,
                       const CpuRegion& region)
    : file_(region.file != nullptr ? *region.file : file),
      order_(info.order),
      page_bytes_(buffer.page_bytes),
      compressed_(buffer.compressed),
      region_(region),
      at_(region.offset),
      piece_offset_(region.offset),
      compression_(info.compression),
      read_bytes_(info.read_bytes) {}

std::nullopt_t PageSource::stop(const char* code, const std::string& detail) {
  damage_ = ParseError(code, "BUFFER FLYRECORD", piece_offset_, detail, region_.cpu).message();
  at_ = region_.offset + region_.bytes;
  chunks_left_ = 0;
  return std::nullopt;
}

// The next bytes of the file, read ahead in large pieces; null when the
// region ends before them.
const std::byte* PageSource::buffered(std::size_t bytes) {
  if (packed_end_ - packed_begin_ < bytes) {
    if (packed_.size() > 4 * read_bytes_ && bytes <= read_bytes_) {
      std::vector<std::byte>(read_bytes_).swap(packed_);  // one chunk was much larger
    }
    const std::uint64_t region_left = region_.offset + region_.bytes - at_;
    if (region_left < bytes) return nullptr;
    const auto want = static_cast<std::size_t>(
        std::min<std::uint64_t>(region_left, std::max(bytes, read_bytes_)));
    if (packed_.size() < want) packed_.resize(want);
    packed_begin_ = 0;
    packed_end_ = file_.read_some(at_, std::span(packed_).first(want));
    if (packed_end_ < bytes) return nullptr;
  }
  const std::byte* view = packed_.data() + packed_begin_;
  packed_begin_ += bytes;
  at_ += bytes;
  return view;
}

std::optional<std::span<const std::byte>> PageSource::next() {
  piece_offset_ = at_;
  if (region_.bytes == 0 || at_ >= region_.offset + region_.bytes) {
    if (compressed_ && region_.bytes > 0 && chunks_left_.value_or(1) > 0) {
      return stop("truncated-trace", "data end where " + std::to_string(chunks_left_.value_or(1)) +
                                         " more chunks should follow");
    }
    return std::nullopt;
  }
  return compressed_ ? next_chunk() : next_window();
}

std::optional<std::span<const std::byte>> PageSource::next_chunk() {
  if (!chunks_left_) {
    const std::byte* head = buffered(4);
    if (head == nullptr) return stop("truncated-trace", "data end before the count of chunks");
    chunks_left_ = load<std::uint32_t>(head, order_);
    piece_offset_ = at_;
  }
  if (*chunks_left_ == 0) return std::nullopt;
  const std::byte* head = buffered(8);
  if (head == nullptr) return stop("truncated-trace", "data end in the header of a chunk");
  const auto packed = load<std::uint32_t>(head, order_);
  const auto unpacked = load<std::uint32_t>(head + 4, order_);
  if (unpacked == 0 || unpacked > kMaxChunkBytes || unpacked % page_bytes_ != 0 ||
      packed > kMaxChunkBytes) {
    return stop("bad-chunk", "chunk claims " + std::to_string(packed) + " bytes packed and " +
                                 std::to_string(unpacked) + " unpacked, wanted whole pages of " +
                                 std::to_string(page_bytes_) + " bytes");
  }
  const std::byte* data = buffered(packed);
  if (data == nullptr) {
    return stop("truncated-trace", "chunk of " + std::to_string(packed) +
                                       " bytes reaches over the end of the data");
  }
  auto& out = thread_pages();
  out.resize(unpacked);
  const std::string problem = decompressor(compression_).run({data, packed}, out);
  if (!problem.empty()) return stop("bad-compression", problem);
  --*chunks_left_;
  return out;
}

std::optional<std::span<const std::byte>> PageSource::next_window() {
  const std::uint64_t left = region_.offset + region_.bytes - at_;
  const std::size_t whole = std::max<std::size_t>(1, read_bytes_ / page_bytes_) * page_bytes_;
  auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, whole));
  auto& out = thread_pages();
  out.resize(want);
  const std::size_t got = file_.read_some(at_, out);
  const std::size_t pages = got / page_bytes_ * page_bytes_;
  if (got < want || pages == 0) {
    if (pages == 0) {
      return stop("truncated-page", "page holds " + std::to_string(got) + " of " +
                                        std::to_string(page_bytes_) + " bytes");
    }
    want = pages;
  }
  out.resize(pages);
  at_ += pages;
  return out;
}

}  // namespace wbscope
