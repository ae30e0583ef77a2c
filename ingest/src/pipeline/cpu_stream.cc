// SPDX-License-Identifier: Apache-2.0
// The records of one CPU, counted, and the wanted ones copied into blocks.
#include "pipeline/cpu_stream.h"

#include <algorithm>
#include <utility>

namespace wbscope {
namespace {

// Even where nothing is wanted, come back now and then for progress and ^C.
constexpr int kMaxPiecesPerFill = 256;
// How far a block may grow beyond the size at which it is full.
constexpr std::size_t kMaxBlocks = 2;
// A record that is too short to tell its thread.
constexpr std::int32_t kNoTid = INT32_MIN;

}  // namespace

EventDispatch::EventDispatch(const EventCatalog& catalog, const std::vector<bool>& wanted)
    : catalog_(catalog) {
  std::uint32_t largest = 0;
  for (const auto& event : catalog.events) largest = std::max(largest, event.id);
  slots_.resize(std::size_t{largest} + 1);
  for (std::uint32_t i = 0; i < catalog.events.size(); ++i) {
    const EventPlan& event = catalog.events[i];
    if (event.status == FormatStatus::kNone) continue;
    slots_[event.id] = {.event = i, .has_format = true, .known = true, .wanted = wanted[i]};
  }
  if (!catalog.unknown) return;
  none_ = {.event = *catalog.unknown,
           .has_format = false,
           .known = true,
           .wanted = wanted[*catalog.unknown]};
}

CpuStream::CpuStream(const InputFile& file, const TraceInfo& info, std::uint32_t buffer_index,
                     const CpuRegion& region, const EventDispatch& dispatch,
                     std::size_t block_bytes, const TimeRange& range)
    : source_(file, info, info.buffers[buffer_index], region),
      dispatch_(dispatch),
      layout_(dispatch.catalog().page),
      common_(dispatch.catalog().common),
      order_(info.order),
      buffer_(buffer_index),
      cpu_(region.cpu),
      page_bytes_(info.buffers[buffer_index].page_bytes),
      block_bytes_(block_bytes),
      range_(range),
      clock_(info, buffer_index, region.cpu) {}

std::int64_t CpuStream::to_ns(std::uint64_t raw) const noexcept { return clock_.to_ns(raw); }

// The time stamp in a page's header; nothing on the page is older.
std::int64_t CpuStream::stamp_of(std::span<const std::byte> page) const noexcept {
  return to_ns(load<std::uint64_t>(page.data(), order_));
}

template <ByteOrder kOrder>
bool CpuStream::walk(std::span<const std::byte> pages, RecordBlock& block) {
  const bool whole = range_.is_whole();
  // One for each thread: as many for each CPU as there are formats would be
  // too many. Empty again before this returns.
  static thread_local std::vector<std::uint64_t> counts;
  static thread_local std::vector<std::uint32_t> counted;
  if (counts.size() < dispatch_.catalog().events.size()) {
    counts.resize(dispatch_.catalog().events.size());
  }
  const auto on_record = [&](std::uint64_t raw_ts, std::span<const std::byte> record) {
    const bool has_common = record.size() >= common_.end;
    std::int32_t tid = kNoTid;
    const EventDispatch::Slot* found = &dispatch_.none();
    if (has_common) [[likely]] {
      tid = load<std::int32_t>(record.data() + common_.pid_offset, kOrder);
      found = &dispatch_.slot(
          common_.type_bytes == 2
              ? load<std::uint16_t>(record.data() + common_.type_offset, kOrder)
              : load<std::uint32_t>(record.data() + common_.type_offset, kOrder));
    }
    const EventDispatch::Slot& slot = *found;
    const std::int64_t ts = to_ns(raw_ts);
    if (!whole && !range_.holds(ts)) return;
    if (ts < last_ts_) [[unlikely]] counters_.add(Counter::kTimeBackwards);
    last_ts_ = ts;

    if (!slot.has_format) [[unlikely]] counters_.add(Counter::kUnknownEvents);
    if (!slot.known) [[unlikely]] return;
    if (counts[slot.event]++ == 0) [[unlikely]] counted.push_back(slot.event);
    if (has_common) [[likely]] {
      if (current_ == nullptr || tid != current_tid_) {
        current_ = &tasks_.try_emplace(tid, TaskSpan{.first_ts = ts, .last_ts = ts, .events = 0})
                        .first->second;
        current_tid_ = tid;
      }
      current_->last_ts = ts;
      ++current_->events;
    }

    if (!slot.wanted) [[likely]] return;
    block.refs.push_back({.ts = ts,
                          .offset = static_cast<std::uint32_t>(block.data.size()),
                          .bytes = static_cast<std::uint32_t>(record.size()),
                          .tid = tid,
                          .event = slot.event});
    block.data.insert(block.data.end(), record.begin(), record.end());
  };

  const std::size_t count = pages.size() / page_bytes_;
  bool more = true;
  for (std::size_t i = std::exchange(resume_page_, 0); i < count; ++i) {
    // A piece may hold many times what a block should: leave the rest of it.
    if (block.size() > kMaxBlocks * block_bytes_) [[unlikely]] {
      resume_page_ = source_.give_back(i);
      break;
    }
    const auto page = pages.subspan(i * page_bytes_, page_bytes_);
    if (!whole) {
      more = stamp_of(page) < range_.end;
      if (!more) break;
      // The next page begins before the range: this one ends before it.
      if (i + 1 < count && stamp_of(pages.subspan((i + 1) * page_bytes_)) < range_.first) continue;
    }
    const std::size_t first = block.refs.size();
    const auto result = walk_page<kOrder>(page, layout_, counters_, on_record);
    if (result.lost && range_.holds(to_ns(result.first_ts))) [[unlikely]] {
      block.gaps.push_back(first);
    }
    counters_.add(Counter::kPages);
    counters_.add(Counter::kBytesUncompressed, page_bytes_);
    note_page(result, i);
  }
  for (const std::uint32_t event : counted) {
    counts_[event] += counts[event];
    counts[event] = 0;
  }
  counted.clear();
  return more;
}

void CpuStream::note_page(const PageResult& result, std::size_t page_index) {
  if (result.lost && range_.holds(to_ns(result.first_ts))) {
    counters_.add(Counter::kLostGaps);
    lost_.push_back({.ts = to_ns(result.first_ts), .count = result.lost->count});
  }
  if (result.is_page && result.complete) return;
  counters_.add(result.is_page ? Counter::kBadRecords : Counter::kBadPages);
  if (damage_) return;  // the first one is told, the counters have the rest
  const std::string which = "page " + std::to_string(page_index) + " of the piece there: ";
  damage_ = ParseError(result.is_page ? "bad-record" : "bad-page", "BUFFER FLYRECORD",
                       source_.piece_offset(),
                       which + (result.is_page
                                    ? "record at byte " + std::to_string(result.bad_offset) +
                                          " reaches over the page's end"
                                    : "header claims more data than a page holds"),
                       cpu_)
                .message();
}

std::optional<std::int64_t> CpuStream::first_record_ts() {
  std::optional<std::int64_t> first;
  Counters unused;
  const auto keep = [&](std::uint64_t raw, std::span<const std::byte>) {
    if (!first) first = to_ns(raw);
  };
  while (!first) {
    const auto pages = source_.next();
    if (!pages) return std::nullopt;
    for (std::size_t at = 0; !first && at + page_bytes_ <= pages->size(); at += page_bytes_) {
      const auto page = pages->subspan(at, page_bytes_);
      if (order_ == ByteOrder::kLittle) {
        (void)walk_page<ByteOrder::kLittle>(page, layout_, unused, keep);
      } else {
        (void)walk_page<ByteOrder::kBig>(page, layout_, unused, keep);
      }
    }
  }
  return first;
}

bool CpuStream::fill(RecordBlock& block) {
  if (!started_ && range_.first != INT64_MIN) {
    source_.skip_while([this](std::uint64_t stamp) { return to_ns(stamp) < range_.first; });
  }
  started_ = true;
  // Growing by doubling would leave a thousand CPUs with twice what they need.
  block.data.reserve(block_bytes_ + block_bytes_ / 4);
  const auto is_full = [&] {
    return block.data.size() >= block_bytes_ || block.size() > kMaxBlocks * block_bytes_;
  };
  for (int piece = 0; piece < kMaxPiecesPerFill && !is_full(); ++piece) {
    const auto pages = source_.next();
    if (!pages) {
      if (source_.damage()) damage_ = source_.damage();
      return false;
    }
    const bool more = order_ == ByteOrder::kLittle ? walk<ByteOrder::kLittle>(*pages, block)
                                                   : walk<ByteOrder::kBig>(*pages, block);
    if (!more) return false;
  }
  source_.release();
  return true;
}

}  // namespace wbscope
