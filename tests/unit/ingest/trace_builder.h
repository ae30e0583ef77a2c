// SPDX-License-Identifier: Apache-2.0
// Small trace.dat files of version 6 and 7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "page_builder.h"
#include "support.h"
#include "tracedat/trace_info.h"

namespace wbscope::testing {

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
  unsigned formats_named = 1;           // how often version 7 names the formats
  std::vector<std::string> cpu_pages;   // of the top instance, by CPU
  std::vector<std::string> more_pages;  // of an instance "second"; none when empty
};

[[nodiscard]] std::string build_v6(const TraceSpec& spec);
[[nodiscard]] std::string build_v7(const TraceSpec& spec);

// Two CPUs with three events each, on two pages each.
[[nodiscard]] TraceSpec small_trace();
inline constexpr std::uint64_t kSmallTraceEvents = 6;
// One event, as a big-endian machine of 32 bits writes it.
[[nodiscard]] TraceSpec one_event_of_32_bits();

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
// The same with any one byte wrong: an error, or damage, or at least no more events.
[[nodiscard]] std::string check_every_inversion(const std::string& file, std::uint64_t events);

}  // namespace wbscope::testing
