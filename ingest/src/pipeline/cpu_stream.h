// SPDX-License-Identifier: Apache-2.0
// CpuStream: the records of one CPU in one buffer, counted, and the wanted
// ones copied into blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "format/event_catalog.h"
#include "pipeline/stamp_check.h"
#include "tracedat/clock_correction.h"
#include "tracedat/page_source.h"

namespace wbscope {

// One wanted record; its bytes lie in the block that holds the reference.
struct RecordRef {
  std::int64_t ts = 0;  // ns (or ticks, for clocks that are not time)
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  std::int32_t tid = 0;
  std::uint32_t event = 0;  // index in EventCatalog::events
};

struct RecordBlock {
  std::vector<RecordRef> refs;
  std::vector<std::byte> data;
  // Before which references the kernel lost events; one may be behind the last.
  std::vector<std::size_t> gaps;

  void clear() {
    refs.clear();
    data.clear();
    gaps.clear();
  }
  // Of memory, references and all.
  [[nodiscard]] std::size_t size() const noexcept {
    return data.size() + refs.size() * sizeof(RecordRef);
  }
  [[nodiscard]] std::span<const std::byte> bytes(const RecordRef& ref) const noexcept {
    return std::span(data).subspan(ref.offset, ref.bytes);
  }
};

struct TaskSpan {
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
  std::uint64_t events = 0;
};

struct LostGap {
  std::int64_t ts = 0;
  std::optional<std::uint64_t> count;
};

// How often each event occurred, by index in EventCatalog::events. Events that
// did not are left out: a file may have many CPUs and many formats.
using EventCounts = std::unordered_map<std::uint32_t, std::uint64_t>;

// The part of a trace that is read: records with first <= ts < end.
struct TimeRange {
  std::int64_t first = INT64_MIN;
  std::int64_t end = INT64_MAX;

  [[nodiscard]] bool is_whole() const noexcept {
    return first == INT64_MIN && end == INT64_MAX;
  }
  [[nodiscard]] bool holds(std::int64_t ts) const noexcept { return first <= ts && ts < end; }
};

// Which events are wanted, and where to find an event by its id.
class EventDispatch {
 public:
  EventDispatch(const EventCatalog& catalog, const std::vector<bool>& wanted);

  struct Slot {
    std::uint32_t event = 0;
    bool has_format = false;
    bool known = false;  // has a plan, if only that of unknown events
    bool wanted = false;
  };
  [[nodiscard]] const Slot& slot(std::uint32_t id) const noexcept {
    return id < slots_.size() && slots_[id].has_format ? slots_[id] : none_;
  }
  // For records without a format.
  [[nodiscard]] const Slot& none() const noexcept { return none_; }
  [[nodiscard]] const EventCatalog& catalog() const noexcept { return catalog_; }

 private:
  const EventCatalog& catalog_;
  std::vector<Slot> slots_;
  Slot none_;
};

class CpuStream {
 public:
  CpuStream(const InputFile& file, const TraceInfo& info, std::uint32_t buffer_index,
            const CpuRegion& region, const EventDispatch& dispatch, std::size_t block_bytes,
            const TimeRange& range = {}, const StampFixes* fixes = nullptr);

  // Time of the first record on the first page that has one. Takes pages away
  // from fill(): ask a stream of its own.
  [[nodiscard]] std::optional<std::int64_t> first_record_ts();

  // Appends wanted records until the block is full or the pages end.
  // Returns false when the pages have ended.
  [[nodiscard]] bool fill(RecordBlock& block);

  [[nodiscard]] std::uint32_t cpu() const noexcept { return cpu_; }
  [[nodiscard]] std::uint32_t buffer() const noexcept { return buffer_; }

  // Complete once fill() has returned false.
  [[nodiscard]] const EventCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] const std::unordered_map<std::int32_t, TaskSpan>& tasks() const noexcept {
    return tasks_;
  }
  [[nodiscard]] const std::vector<LostGap>& lost() const noexcept { return lost_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  // Complete where a whole stream was read, up to its end. Of ticks there are none.
  [[nodiscard]] StampStream stamps() const {
    return {cpu_, buffer_, counts_ns_ ? stamps_ : StampTrack(0)};
  }
  // Some stamps are more than an hour from others. Where only a part was to be
  // read, it may be the wrong one then.
  [[nodiscard]] bool is_doubtful() const noexcept { return is_doubtful_ || stamps_.has_jumps(); }
  [[nodiscard]] const std::optional<Message>& damage() const noexcept { return damage_; }
  [[nodiscard]] std::uint64_t consumed() const noexcept { return source_.consumed(); }

 private:
  // False when the rest of the CPU is behind the range.
  template <ByteOrder kOrder>
  [[nodiscard]] bool walk(std::span<const std::byte> pages, RecordBlock& block);
  [[nodiscard]] std::int64_t stamp_of(std::span<const std::byte> page) const noexcept;
  [[nodiscard]] std::int64_t to_ns(std::uint64_t raw) const noexcept;
  void note_page(const PageResult& result, std::size_t page_index);
  // A record that is not the next hour's: is it the first, or where stamps jump?
  void note_step(std::int64_t ts);
  void skip_to_range();
  void end_stamps();
  [[nodiscard]] std::int64_t gap_ts(std::uint64_t raw) const noexcept;

  PageSource source_;
  const EventDispatch& dispatch_;
  PageLayout layout_;
  CommonFields common_;
  ByteOrder order_;
  std::uint32_t buffer_;
  std::uint32_t cpu_;
  std::uint32_t page_bytes_;
  std::size_t block_bytes_;
  TimeRange range_;
  bool started_ = false;
  std::size_t resume_page_ = 0;  // of the next piece
  ClockCorrection clock_;

  EventCounts counts_;
  std::uint64_t records_ = 0;  // in counts_
  std::unordered_map<std::int32_t, TaskSpan> tasks_;
  TaskSpan* current_ = nullptr;
  std::int32_t current_tid_ = 0;
  std::int64_t last_ts_ = INT64_MIN;  // as found
  bool counts_ns_;
  StampTrack stamps_;
  std::size_t page_index_ = 0;  // of the piece
  std::optional<std::int64_t> page_ts_;  // of the last page's header, where a part is read
  bool is_doubtful_ = false;
  const StampFixes* fixes_;  // null: stamps are taken as they are
  bool is_bad_ = false;
  std::int64_t fixed_ts_ = 0;  // of records whose stamp is_bad_
  std::vector<LostGap> lost_;
  Counters counters_;
  std::optional<Message> damage_;
};

}  // namespace wbscope
