// SPDX-License-Identifier: Apache-2.0
// Named counters for records and sections that could not be read in full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wbscope {

enum class Severity : std::uint8_t { kInfo, kError, kDataLoss };

enum class Counter : std::uint8_t {
  kPages,
  kBytesUncompressed,
  kDiscardedRecords,
  kLostGaps,
  kUnknownEvents,
  kShortRecords,
  kBadDynamicFields,
  kBadRecords,
  kBadPages,
  kTimeBackwards,
  kBadStamps,
  kReplacedText,
  kFormatsNotParsed,
  kNamesOverCap,
  kRecordsOverCap,
  kTextLines,
  kTextGeneric,
  kTextContinuations,
  kTextOther,
  kTextNotUnderstood,
  kTextCut,
  kTextOverwritten,
  kCount,
};

struct CounterInfo {
  std::string_view name;
  Severity severity;
  std::string_view description;
};

// In the order of Counter.
inline constexpr std::array<CounterInfo, static_cast<std::size_t>(Counter::kCount)> kCounterInfo{{
    {"pages", Severity::kInfo, "ring-buffer pages walked"},
    {"bytes_uncompressed", Severity::kInfo, "bytes of ring-buffer pages after decompression"},
    {"discarded_records", Severity::kInfo,
     "records that the kernel discarded (filters) and left as padding"},
    {"lost_gaps", Severity::kDataLoss,
     "places where the kernel's ring buffer overran; see table lost_events"},
    {"unknown_events", Severity::kError,
     "records whose event id has no format in the file, or too short to have one; loaded into "
     "table ev_unknown"},
    {"short_records", Severity::kError,
     "loaded records that are shorter than their format; fields that they lack are NULL"},
    {"bad_dynamic_fields", Severity::kError,
     "dynamic fields that point outside their record; stored as NULL"},
    {"bad_records", Severity::kDataLoss,
     "records that reach over the end of their page; the rest of that page was skipped"},
    {"bad_pages", Severity::kDataLoss, "pages whose header is not one of a ring buffer; skipped"},
    {"time_backwards", Severity::kError,
     "records with a time stamp before that of the record before them on the same CPU"},
    {"bad_stamps", Severity::kError,
     "records whose time stamp is far off those around them; they got the time of the record "
     "before them, see table bad_stamp"},
    {"replaced_text", Severity::kError,
     "strings with bytes that are not UTF-8; each such byte was replaced by U+FFFD"},
    {"formats_not_parsed", Severity::kError,
     "event formats that libtraceevent could not parse; loaded with a raw payload"},
    {"names_over_cap", Severity::kDataLoss,
     "events and fields left out because the trace names too many of them"},
    {"records_over_cap", Severity::kDataLoss,
     "records of events over that cap; counted in events_count and not loaded"},
    {"text_lines", Severity::kInfo, "lines of a trace that is text"},
    {"text_generic", Severity::kInfo,
     "records of loaded events that fit no reference format; read as key=value"},
    {"text_continuations", Severity::kInfo, "lines of call chains and stack dumps; left out"},
    {"text_other", Severity::kInfo, "lines of a kernel log that are no event"},
    {"text_not_understood", Severity::kDataLoss, "lines of text that are no record; left out"},
    {"text_cut", Severity::kDataLoss, "lines longer than 64 KiB; their rest was left out"},
    {"text_overwritten", Severity::kDataLoss,
     "records that the text's heading says were written but overwritten before it was read"},
}};

// A set of counters; each thread has its own, and they are added up.
class Counters {
 public:
  void add(Counter counter, std::uint64_t n = 1) noexcept {
    values_[static_cast<std::size_t>(counter)] += n;
  }
  [[nodiscard]] std::uint64_t get(Counter counter) const noexcept {
    return values_[static_cast<std::size_t>(counter)];
  }
  void merge(const Counters& other) noexcept {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
  }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(Counter::kCount)> values_{};
};

}  // namespace wbscope
