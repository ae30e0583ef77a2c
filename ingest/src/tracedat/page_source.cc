// SPDX-License-Identifier: Apache-2.0
// Pages of one CPU (trace-cmd.dat.v7(5), COMPRESSION FORMAT OF THE TRACE DATA).
#include "tracedat/page_source.h"

#include <algorithm>
#include <cstring>

#include "base/interrupt.h"
#include "base/write_budget.h"

namespace wbscope {
namespace {

constexpr std::size_t kChunkHeaderBytes = 8;
constexpr std::size_t kStampBytes = 8;
// What is skipped ends at that chunk: it is to save time, and 8 MiB are enough for it.
constexpr std::size_t kMostOffsets = 1u << 20;
// Below this share of the budget there are too many CPUs to keep it for each.
constexpr std::size_t kKeepReadAhead = 64u << 10;

// The last of count pieces that is_before, by bisection; 0 when the first is
// not, or when a piece does not tell.
std::size_t last_before(
    std::size_t count, const std::function<std::optional<bool>(std::size_t)>& is_before) {
  std::size_t low = 0;  // is before, or is the first
  std::size_t high = count;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    const auto before = is_before(middle);
    if (!before) return 0;
    (*before ? low : high) = middle;
  }
  return low;
}

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
      budget_(info.budget),
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
  if (*chunks_left_ == 0) {
    check_rest();
    return std::nullopt;
  }
  const std::byte* head = buffered(8);
  if (head == nullptr) return stop("truncated-trace", "data end in the header of a chunk");
  const auto packed = load<std::uint32_t>(head, order_);
  const auto unpacked = load<std::uint32_t>(head + 4, order_);
  if (!is_chunk(packed, unpacked)) {
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
  budget_->add_bytes(packed, unpacked);
  note_records(0);
  return out;
}

void PageSource::note_records(std::uint64_t records) {
  if (!compressed_) return;
  budget_->add_records(records);
  if (!budget_->is_exceeded()) return;
  const std::string path = file_.path();
  throw Error(Exit::kInput,
              {.slug = "unpack-limit",
               .object = path,
               .text = "found " + std::to_string(budget_->unpacked()) + " bytes of pages and " +
                       std::to_string(budget_->records()) + " records in " +
                       std::to_string(budget_->packed()) + " compressed bytes, wanted at most " +
                       std::to_string(UnpackBudget::kMostBytes) + " bytes and " +
                       std::to_string(UnpackBudget::kMostRecords) + " records for each",
               .at = ParseError::place("BUFFER FLYRECORD", piece_offset_, region_.cpu),
               .have = "no recorder writes such a file; one that was made to fill a disk is so",
               .effect = "nothing was written",
               .fix = lift_limit(path)});
}

// Up to the data of the next CPU there is nothing but zeros, for alignment.
// Other bytes are data that nothing counts.
void PageSource::check_rest() {
  if (const auto found = first_nonzero(file_, at_, region_.offset + region_.bytes)) {
    (void)stop("unclaimed-data", "data follow the last chunk, from file offset " +
                                     std::to_string(*found));
  }
  at_ = region_.offset + region_.bytes;
}

bool PageSource::is_chunk(std::uint32_t packed, std::uint32_t unpacked) const noexcept {
  return unpacked != 0 && unpacked <= kMaxChunkBytes && unpacked % page_bytes_ == 0 &&
         packed <= kMaxChunkBytes;
}

// Where each chunk's header lies, as far as next_chunk() would read them: a
// hole in the file is a header of zeros after the other.
std::vector<std::uint64_t> PageSource::chunk_offsets() const {
  std::vector<std::uint64_t> offsets;
  std::vector<std::byte> raw(kChunkHeaderBytes);
  if (file_.read_some(region_.offset, std::span(raw).first(4)) != 4) return offsets;
  const auto chunks = std::min<std::size_t>(load<std::uint32_t>(raw.data(), order_), kMostOffsets);
  const std::uint64_t end = region_.offset + region_.bytes;
  std::uint64_t at = region_.offset + 4;
  while (offsets.size() < chunks && at + kChunkHeaderBytes <= end &&
         file_.read_some(at, raw) == raw.size()) {
    throw_if_interrupted();
    const auto packed = load<std::uint32_t>(raw.data(), order_);
    if (!is_chunk(packed, load<std::uint32_t>(raw.data() + 4, order_))) break;
    offsets.push_back(at);
    at += kChunkHeaderBytes + packed;
  }
  return offsets;
}

std::optional<std::uint64_t> PageSource::stamp_of_chunk(std::uint64_t offset) {
  std::vector<std::byte> head(kChunkHeaderBytes);
  if (file_.read_some(offset, head) != head.size()) return std::nullopt;
  const auto packed = load<std::uint32_t>(head.data(), order_);
  const auto unpacked = load<std::uint32_t>(head.data() + 4, order_);
  if (!is_chunk(packed, unpacked) || unpacked < kStampBytes) return std::nullopt;
  std::vector<std::byte> data(packed);
  std::vector<std::byte> pages(unpacked);
  if (file_.read_some(offset + head.size(), data) != packed) return std::nullopt;
  if (!decompressor(compression_).run(data, pages).empty()) return std::nullopt;
  return load<std::uint64_t>(pages.data(), order_);
}

std::optional<std::uint64_t> PageSource::stamp_of_page(std::uint64_t offset) const {
  std::vector<std::byte> stamp(kStampBytes);
  if (file_.read_some(offset, stamp) != stamp.size()) return std::nullopt;
  return load<std::uint64_t>(stamp.data(), order_);
}

void PageSource::skip_while(const std::function<bool(std::uint64_t stamp)>& is_before) {
  const auto ask = [&](std::optional<std::uint64_t> stamp) {
    return stamp ? std::optional<bool>(is_before(*stamp)) : std::nullopt;
  };
  if (!compressed_) {
    const auto page = [&](std::size_t i) { return region_.offset + i * page_bytes_; };
    at_ = page(last_before(region_.bytes / page_bytes_,
                           [&](std::size_t i) { return ask(stamp_of_page(page(i))); }));
    return;
  }
  const auto chunks = chunk_offsets();
  const std::size_t skipped = last_before(
      chunks.size(), [&](std::size_t i) { return ask(stamp_of_chunk(chunks[i])); });
  if (skipped == 0) return;
  const std::byte* head = buffered(4);
  if (head == nullptr) return;
  chunks_left_ = load<std::uint32_t>(head, order_) - static_cast<std::uint32_t>(skipped);
  packed_begin_ = packed_end_ = 0;
  at_ = chunks[skipped];
}

std::size_t PageSource::give_back(std::size_t pages_taken) {
  packed_begin_ = packed_end_ = 0;
  if (!compressed_) {
    at_ = piece_offset_ + pages_taken * page_bytes_;
    return 0;
  }
  at_ = piece_offset_;
  chunks_left_ = chunks_left_.value_or(0) + 1;
  return pages_taken;
}

void PageSource::release() {
  if (read_bytes_ >= kKeepReadAhead) return;
  packed_begin_ = packed_end_ = 0;
  std::vector<std::byte>().swap(packed_);
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
