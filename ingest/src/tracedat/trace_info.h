// SPDX-License-Identifier: Apache-2.0
// TraceInfo: what the container of a trace.dat says, before any event is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/error.h"

namespace wbscope {

// Caps against sizes that a damaged or hostile file claims.
inline constexpr std::uint64_t kMaxSectionBytes = 64u << 20;
inline constexpr std::uint64_t kMaxAllSectionBytes = 128u << 20;  // a section may be named twice
inline constexpr std::uint64_t kMaxChunkBytes = 16u << 20;
inline constexpr std::uint32_t kMaxPageBytes = 1u << 20;
inline constexpr std::uint32_t kMinPageBytes = 512;
inline constexpr std::uint32_t kMaxCpus = 16384;
inline constexpr std::size_t kMaxRegions = 65536;  // CPUs of all instances
inline constexpr std::uint32_t kMaxFormats = 65536;
inline constexpr std::uint32_t kMaxOptions = 65536;

enum class Compression : std::uint8_t { kNone, kZlib, kZstd };

// Where one CPU's pages lie in the file.
struct CpuRegion {
  std::uint32_t cpu = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// One tracing instance: its pages and the clock of their time stamps.
struct BufferInfo {
  std::string name;  // "" is the top instance
  std::string clock;
  std::uint32_t page_bytes = 0;
  bool compressed = false;
  // The bytes of the file that hold its regions and nothing else; 0: not known.
  std::uint64_t data_begin = 0;
  std::uint64_t data_end = 0;
  std::vector<CpuRegion> regions;
};

struct FormatText {
  std::string system;
  std::string text;
};

struct TraceInfo {
  int version = 0;
  ByteOrder order = ByteOrder::kLittle;
  std::uint32_t long_bytes = 8;  // of the traced machine's user space
  std::uint32_t page_bytes = 0;  // of the traced machine's memory
  std::string compression_name = "none";
  Compression compression = Compression::kNone;

  std::string header_page;  // events/header_page
  std::vector<FormatText> formats;
  std::string cmdlines;  // saved_cmdlines: "pid comm" lines

  std::string uname;
  std::string recorder_version;
  std::string clock;                   // of the top instance
  std::vector<std::string> cpu_stats;  // per_cpu/cpuN/stats
  std::uint64_t trace_id = 0;
  std::int64_t ts_offset_ns = 0;  // options OFFSET and DATE
  std::uint32_t cpus_count = 0;

  // Option TSC2NSEC: ns = (tsc * multiplier) >> shift, plus offset.
  bool has_tsc = false;
  std::uint32_t tsc_multiplier = 1;
  std::uint32_t tsc_shift = 0;
  std::uint64_t tsc_offset = 0;

  std::vector<BufferInfo> buffers;
  std::size_t regions_count = 0;  // of all buffers
  std::vector<Message> damage;  // what could not be read, in words
};

// "local [global] counter" -> "global"; text without brackets is the clock.
[[nodiscard]] std::string selected_clock(std::string_view trace_clock);

}  // namespace wbscope
