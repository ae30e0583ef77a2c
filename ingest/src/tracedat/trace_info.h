// SPDX-License-Identifier: Apache-2.0
// TraceInfo: what the container of a trace.dat says, before any event is read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/error.h"
#include "base/input_file.h"
#include "tracedat/unpack_budget.h"

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

// Where one CPU's pages lie.
struct CpuRegion {
  std::uint32_t cpu = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<const InputFile> file;  // none: the trace itself
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

  // A recorder that was asked for an instance only still lists the top one.
  [[nodiscard]] bool has_pages() const noexcept {
    return std::any_of(regions.begin(), regions.end(),
                       [](const CpuRegion& region) { return region.bytes > 0; });
  }
};

struct FormatText {
  std::string system;
  std::string text;
};

// A text that is read when it is needed.
struct TextPlace {
  std::uint64_t offset = 0;  // in version 7 of its section, in version 6 of the text
  std::uint64_t bytes = 0;   // version 6 only
};

// How far a guest's clock was from its host's at a time of the guest:
// host = (guest * scaling >> fraction) + offset.
struct ShiftSample {
  std::int64_t time = 0;
  std::int64_t offset = 0;
  std::int64_t scaling = 1;
  std::uint32_t fraction = 0;
};

// Option TIME_SHIFT of a guest's file.
struct ClockShift {
  static constexpr std::uint32_t kInterpolate = 1;  // between two samples
  std::uint64_t peer_trace_id = 0;                  // of the host's file
  std::uint32_t flags = 0;
  std::vector<std::vector<ShiftSample>> cpus;  // by CPU, sorted by time
};

// Option GUEST of a host's file.
struct GuestInfo {
  std::string name;
  std::uint64_t trace_id = 0;
  std::vector<std::pair<std::uint32_t, std::int32_t>> vcpu_tids;  // vCPU, thread on the host
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
  std::string printk_formats;
  std::optional<TextPlace> kallsyms;

  std::string uname;
  std::string recorder_version;
  std::string clock;                   // of the top instance
  std::vector<std::string> cpu_stats;  // per_cpu/cpuN/stats
  std::uint64_t trace_id = 0;
  std::int64_t ts_offset_ns = 0;  // options OFFSET and DATE
  std::uint32_t cpus_count = 0;

  // Option TSC2NSEC: ns = (tsc * multiplier) >> shift. Its offset is stored and
  // not applied, as trace-cmd report does.
  bool has_tsc = false;
  std::uint32_t tsc_multiplier = 1;
  std::uint32_t tsc_shift = 0;
  std::uint64_t tsc_offset = 0;

  ClockShift shift;
  std::vector<GuestInfo> guests;

  std::vector<BufferInfo> buffers;
  std::size_t regions_count = 0;  // of all buffers
  std::size_t read_bytes = 256u << 10;  // at a time, for each CPU
  std::vector<Message> damage;  // what could not be read, in words
  std::shared_ptr<UnpackBudget> budget = std::make_shared<UnpackBudget>();
};

// "local [global] counter" -> "global"; text without brackets is the clock.
[[nodiscard]] std::string selected_clock(std::string_view trace_clock);

}  // namespace wbscope
