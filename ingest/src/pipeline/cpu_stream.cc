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
                     std::size_t block_bytes, const TimeRange& range, const StampFixes* fixes)
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
      clock_(info, buffer_index, region.cpu),
      counts_ns_(!counts_ticks(info, info.buffers[buffer_index].clock)),
      stamps_(most_segments(info.regions_count)),
      fixes_(fixes) {}

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
  const std::uint64_t records_before = records_;
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
    std::int64_t ts = to_ns(raw_ts);
    // Also where it goes back: the difference has no sign.
    if (static_cast<std::uint64_t>(ts) - static_cast<std::uint64_t>(last_ts_) > kLongStepNs)
        [[unlikely]] {
      note_step(ts);
    }
    last_ts_ = ts;
    if (is_bad_) [[unlikely]] ts = fixed_ts_;
    if (!whole && !range_.holds(ts)) return;
    if (is_bad_) [[unlikely]] counters_.add(Counter::kBadStamps);

    if (!slot.has_format) [[unlikely]] counters_.add(Counter::kUnknownEvents);
    if (!slot.known) [[unlikely]] return;
    if (counts[slot.event]++ == 0) [[unlikely]] counted.push_back(slot.event);
    ++records_;
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
    page_index_ = i;
    if (!whole && fixes_ == nullptr) {
      const std::int64_t stamp = stamp_of(page);
      is_doubtful_ |= counts_ns_ && is_long_step(page_ts_.value_or(stamp), stamp);
      page_ts_ = stamp;
      more = stamp < range_.end;
      if (!more) break;
      // The next page begins before the range: this one ends before it.
      if (i + 1 < count && stamp_of(pages.subspan((i + 1) * page_bytes_)) < range_.first) continue;
    }
    const std::size_t first = block.refs.size();
    const auto result = walk_page<kOrder>(page, layout_, counters_, on_record);
    if (result.lost && range_.holds(gap_ts(result.first_ts))) [[unlikely]] {
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
  source_.note_records(records_ - records_before);
  return more;
}

void CpuStream::note_step(std::int64_t ts) {
  const bool is_first = !stamps_.has_begun();
  const bool is_jump = !is_first && counts_ns_ && is_long_step(last_ts_, ts);
  const bool was_bad = is_bad_;
  if (is_first || is_jump) {
    stamps_.begin(ts, last_ts_, records_, counters_.get(Counter::kPages),
                  {.offset = source_.piece_offset(), .page = page_index_});
    if (fixes_ != nullptr) {
      const auto fix = fixes_->of(stamps_.begun() - 1, ts);
      is_bad_ = fix.has_value();
      fixed_ts_ = fix.value_or(0);
    }
  }
  // What was put right goes back no more.
  if (is_first || ts >= last_ts_ || was_bad || is_bad_ || !range_.holds(ts)) return;
  counters_.add(Counter::kTimeBackwards);
}

void CpuStream::end_stamps() {
  stamps_.end(last_ts_, records_, counters_.get(Counter::kPages));
}

std::int64_t CpuStream::gap_ts(std::uint64_t raw) const noexcept {
  const std::int64_t ts = to_ns(raw);
  return fixes_ == nullptr ? ts : fixes_->shown(ts);
}

void CpuStream::note_page(const PageResult& result, std::size_t page_index) {
  if (result.lost && range_.holds(gap_ts(result.first_ts))) {
    counters_.add(Counter::kLostGaps);
    lost_.push_back({.ts = gap_ts(result.first_ts), .count = result.lost->count});
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

// Stamps are taken to rise. Where those that are looked at do not, the part that
// is found may be the wrong one.
void CpuStream::skip_to_range() {
  std::optional<std::int64_t> before;
  std::optional<std::int64_t> after;
  source_.skip_while([&](std::uint64_t raw) {
    const std::int64_t ts = to_ns(raw);
    const bool is_before = ts < range_.first;
    const std::optional<std::int64_t> last = std::exchange(is_before ? before : after, ts);
    if (last && counts_ns_ && is_long_step(*last, ts)) is_doubtful_ |= is_before == (ts < *last);
    return is_before;
  });
}

bool CpuStream::fill(RecordBlock& block) {
  if (!started_ && range_.first != INT64_MIN && fixes_ == nullptr) skip_to_range();
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
      end_stamps();
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
