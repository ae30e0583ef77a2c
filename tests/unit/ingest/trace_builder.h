// SPDX-License-Identifier: Apache-2.0
// Hand-made ring-buffer pages and small trace.dat files of version 6 and 7.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "support.h"
#include "tracedat/trace_info.h"

namespace wbscope::testing {

// One page, record by record (include/linux/ring_buffer.h, enum
// ring_buffer_type). Sizes are not checked: tests make wrong ones on purpose.
class PageBuilder {
 public:
  explicit PageBuilder(ByteOrder order = ByteOrder::kLittle, std::uint32_t commit_bytes = 8,
                       std::uint32_t page_bytes = 512)
      : commit_bytes_(commit_bytes), page_bytes_(page_bytes), data_(order) {}

  PageBuilder& start(std::uint64_t ts);
  // Up to 112 bytes, a multiple of 4: the type is the length.
  PageBuilder& record(std::uint32_t delta, std::string_view payload);
  // Type 0: the length stands before the payload.
  PageBuilder& long_record(std::uint32_t delta, std::string_view payload);
  PageBuilder& time_extend(std::uint64_t delta);
  PageBuilder& time_stamp(std::uint64_t ts);
  // A padding record of a discarded event, bytes in all behind its header.
  PageBuilder& discarded(std::uint32_t delta, std::uint32_t bytes);
  // The first word of any record, and a plain word.
  PageBuilder& header(std::uint32_t type, std::uint32_t delta);
  PageBuilder& word(std::uint32_t value);
  PageBuilder& lost(std::optional<std::uint64_t> count);
  // The commit field's size, in place of the right one.
  PageBuilder& claim(std::uint64_t commit);

  [[nodiscard]] std::string build() const;

 private:
  std::uint32_t commit_bytes_;
  std::uint32_t page_bytes_;
  std::uint64_t start_ts_ = 0;
  Bytes data_;
  bool has_lost_ = false;
  std::optional<std::uint64_t> lost_count_;
  std::optional<std::uint64_t> claim_;
};

// The event test:tiny, one field "value" (u32 at 8), and a record of it.
inline constexpr std::uint16_t kTinyId = 77;
[[nodiscard]] std::string tiny_format();
[[nodiscard]] std::string tiny_record(ByteOrder order, std::int32_t tid, std::uint32_t value);

[[nodiscard]] std::string header_page_text(std::uint32_t long_bytes);

// One option: its id and its bytes.
using RawOption = std::pair<std::uint16_t, std::string>;

// What a file holds. Both writers lay it out as trace-cmd does.
struct TraceSpec {
  ByteOrder order = ByteOrder::kLittle;
  std::uint32_t long_bytes = 8;
  std::uint32_t page_bytes = 512;
  std::string compression = "none";
  std::string clock = "local [global] mono";
  std::string header_page = header_page_text(8);
  std::string cmdlines = "11 dd\n";
  std::vector<FormatText> formats{{"test", tiny_format()}};
  std::vector<RawOption> options;       // beside the clock and the buffers
  std::vector<std::string> cpu_pages;   // of the top instance, by CPU
  std::vector<std::string> more_pages;  // of an instance "second"; none when empty
};

[[nodiscard]] std::string build_v6(const TraceSpec& spec);
[[nodiscard]] std::string build_v7(const TraceSpec& spec);

// Two CPUs with three events each, on two pages each.
[[nodiscard]] TraceSpec small_trace();
inline constexpr std::uint64_t kSmallTraceEvents = 6;

// What the reader makes of a file: TraceInfo, and all pages walked.
struct ReadBack {
  TraceInfo info;
  std::uint64_t events = 0;
  std::vector<Message> page_damage;

  [[nodiscard]] bool damaged() const { return !info.damage.empty() || !page_damage.empty(); }
};
[[nodiscard]] ReadBack read_back(const std::string& path);

// Cuts the file at every byte. Each piece must give an Error with exit 3, tell
// of damage, or lose nothing. Returns what is wrong, empty when nothing is.
[[nodiscard]] std::string check_every_truncation(const std::string& file, std::uint64_t events);

}  // namespace wbscope::testing
