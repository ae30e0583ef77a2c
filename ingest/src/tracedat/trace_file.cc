// SPDX-License-Identifier: Apache-2.0
// The first bytes of a trace.dat (trace-cmd.dat.v7(5), INITIAL FORMAT).
#include "tracedat/trace_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "tracedat/cpu_files.h"

namespace wbscope {
namespace {

constexpr std::string_view kMagic("\x17\x08\x44tracing", 10);
constexpr std::size_t kHeaderBytes = 256;
constexpr std::size_t kMaxVersionText = 16;
constexpr std::size_t kReadBudget = 16u << 20;  // for all CPUs together
constexpr std::size_t kMinReadBytes = 4u << 10;

struct OtherFile {
  std::string_view magic;
  const char* name;
  const char* fix;
};

constexpr const char* kUnpack = "unpack it, then name the trace that was in it";
constexpr std::array kOtherFiles{
    OtherFile{"SQLite format 3", "an SQLite database",
              "ask a run database with: wbscope query NAME RUN.db"},
    OtherFile{"\x1f\x8b", "a gzip file", "gunzip -c FILE > trace, then name that file"},
    OtherFile{"PK\x03\x04", "a zip archive", kUnpack},
    OtherFile{"\xfd" "7zXZ", "an xz file", kUnpack},
    OtherFile{"\x28\xb5\x2f\xfd", "a zstd file", kUnpack},
    OtherFile{"BZh", "a bzip2 file", kUnpack},
    OtherFile{"\x89PNG", "a PNG image", nullptr},
    OtherFile{"\x7f" "ELF", "an ELF program", nullptr},
};

[[noreturn]] void throw_not_a_trace(const InputFile& file, std::string_view head) {
  std::string found = head.empty() ? "found an empty file" : "found other first bytes";
  std::string fix = "record one with: trace-cmd record -e writeback -e vmscan CMD";
  for (const auto& other : kOtherFiles) {
    if (!head.starts_with(other.magic)) continue;
    found = std::string("found ") + other.name;
    if (other.fix != nullptr) fix = other.fix;
    break;
  }
  throw Error(Exit::kInput, {.slug = "not-a-trace",
                             .object = file.path(),
                             .text = found + ", wanted a trace.dat, the text of a trace"
                                             " or a Perfetto trace",
                             .at = "file offset 0x0",
                             .have = {},
                             .effect = "nothing was written",
                             .fix = fix});
}

// Cuts each region to the bytes that the file has, and notes what is missing.
void clip_regions(const InputFile& file, TraceInfo& info) {
  for (auto& buffer : info.buffers) {
    for (auto& region : buffer.regions) {
      if (region.file != nullptr) continue;
      const std::uint64_t have =
          region.offset >= file.size() ? 0 : file.size() - region.offset;
      if (region.bytes <= have) continue;
      info.damage.push_back(
          {.slug = "truncated-trace",
           .object = {},
           .text = "data of cpu " + std::to_string(region.cpu) + " holds " +
                   std::to_string(have) + " of " + std::to_string(region.bytes) + " bytes",
           .at = ParseError::place("BUFFER FLYRECORD", region.offset, region.cpu),
           .have = {},
           .effect = {},
           .fix = {}});
      region.bytes = have;
    }
  }
}

// No two CPUs share bytes: one that reaches into the next is cut off there. So
// what is read never exceeds the file, whatever its tables say.
void separate_regions(TraceInfo& info) {
  std::vector<CpuRegion*> regions;
  for (auto& buffer : info.buffers) {
    for (auto& region : buffer.regions) {
      if (region.bytes > 0 && region.file == nullptr) regions.push_back(&region);
    }
  }
  std::stable_sort(regions.begin(), regions.end(),
                   [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 0; i + 1 < regions.size(); ++i) {
    CpuRegion& region = *regions[i];
    const std::uint64_t room = regions[i + 1]->offset - region.offset;
    if (region.bytes <= room) continue;
    info.damage.push_back(
        {.slug = "overlapping-data",
         .object = {},
         .text = "data of cpu " + std::to_string(region.cpu) + " claim " +
                 std::to_string(region.bytes) + " bytes, and other data start after " +
                 std::to_string(room),
         .at = ParseError::place("BUFFER FLYRECORD", region.offset, region.cpu),
         .have = {},
         .effect = {},
         .fix = {}});
    region.bytes = room;
  }
}

// Bytes among the pages that no CPU claims hold events that nobody reads. Only
// alignment lies there, and that is zeros. (The end of compressed data is known
// once they are read: PageSource looks there.)
void note_unclaimed(const InputFile& file, TraceInfo& info) {
  const auto check = [&](std::uint64_t begin, std::uint64_t end) {
    const auto found = first_nonzero(file, begin, std::min(end, file.size()));
    if (!found) return;
    info.damage.push_back(ParseError("unclaimed-data", "BUFFER FLYRECORD", *found,
                                     "found data that no CPU claims in bytes " +
                                         std::to_string(begin) + " to " + std::to_string(end))
                              .message());
  };
  for (const auto& buffer : info.buffers) {
    std::uint64_t at = buffer.data_begin;
    if (at == 0) continue;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
    for (const auto& region : buffer.regions) {
      if (region.bytes > 0) spans.emplace_back(region.offset, region.offset + region.bytes);
    }
    std::sort(spans.begin(), spans.end());
    for (const auto& [begin, end] : spans) {
      if (begin > at) check(at, begin);
      at = std::max(at, end);
    }
    if (at < buffer.data_end) check(at, buffer.data_end);
  }
}

}  // namespace

TraceInfo read_trace_info(const InputFile& file) {
  std::vector<std::byte> head(kHeaderBytes);
  head.resize(file.read_some(0, head));
  ByteReader in(head, ByteOrder::kLittle);

  const auto magic = in.take(kMagic.size());
  if (!magic || as_text(*magic) != kMagic) {
    throw_not_a_trace(file, as_text(head));
  }
  const auto version = in.cstring(kMaxVersionText);
  const auto endian = in.read<std::uint8_t>();
  const auto long_bytes = in.read<std::uint8_t>();
  if (!version || !endian || !long_bytes) {
    throw ParseError("truncated-header", "INITIAL FORMAT", in.position(),
                     "file ends in its header, " + std::to_string(head.size()) + " bytes long");
  }
  TraceInfo info;
  if (*version == "6") info.version = 6;
  if (*version == "7") info.version = 7;
  if (info.version == 0) {
    throw ParseError("unknown-version", "INITIAL FORMAT", kMagic.size(),
                     "found version \"" + std::string(*version) + "\", wanted 6 or 7");
  }
  if (*endian > 1 || (*long_bytes != 4 && *long_bytes != 8)) {
    throw ParseError("bad-header", "INITIAL FORMAT", in.position(),
                     "found endian " + std::to_string(*endian) + " and long size " +
                         std::to_string(*long_bytes) + ", wanted 0 or 1 and 4 or 8");
  }
  info.order = *endian == 1 ? ByteOrder::kBig : ByteOrder::kLittle;
  info.long_bytes = *long_bytes;

  ByteReader rest(head, info.order);
  (void)rest.seek(in.position());
  const auto page_bytes = rest.read<std::uint32_t>();
  if (!page_bytes) {
    throw ParseError("truncated-header", "INITIAL FORMAT", rest.position(),
                     "file ends before the page size");
  }
  if (*page_bytes < kMinPageBytes || *page_bytes > kMaxPageBytes ||
      (*page_bytes & (*page_bytes - 1)) != 0) {
    throw ParseError("bad-page-size", "INITIAL FORMAT", rest.position() - 4,
                     "found page size " + std::to_string(*page_bytes) +
                         ", wanted a power of two from 512 to 1048576");
  }
  info.page_bytes = *page_bytes;

  if (info.version == 7) {
    read_container_v7(file, rest.position(), info);
  } else {
    read_container_v6(file, rest.position(), info);
  }
  const std::size_t damage = info.damage.size();
  clip_regions(file, info);
  if (info.damage.size() > damage) attach_cpu_files(file, info);
  separate_regions(info);
  note_unclaimed(file, info);

  std::size_t regions = 0;
  for (const auto& buffer : info.buffers) regions += buffer.regions.size();
  info.read_bytes = std::clamp(kReadBudget / std::max<std::size_t>(regions, 1), kMinReadBytes,
                               info.read_bytes);

  std::uint32_t cpus = info.cpus_count;
  for (auto& buffer : info.buffers) {
    if (buffer.clock.empty()) buffer.clock = info.clock;
    for (const auto& region : buffer.regions) cpus = std::max(cpus, region.cpu + 1);
  }
  if (info.clock.empty() && !info.buffers.empty()) info.clock = info.buffers.front().clock;
  info.cpus_count = cpus;
  return info;
}

}  // namespace wbscope
