// SPDX-License-Identifier: Apache-2.0
// trace.dat version 6: one fixed order of parts (trace-cmd.dat.v6(5)).
#include <algorithm>
#include <vector>

#include "tracedat/section_text.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

constexpr std::size_t kTagBytes = 10;
constexpr std::string_view kTagOptions("options  \0", kTagBytes);
constexpr std::string_view kTagLatency("latency  \0", kTagBytes);
constexpr std::string_view kTagFlyrecord("flyrecord\0", kTagBytes);

struct NamedBuffer {
  std::uint64_t offset = 0;
  std::string name;
};

// The pairs (offset, size) of each CPU's pages.
BufferInfo parse_regions(SectionReader& in, std::uint32_t cpus, TraceInfo& info) {
  BufferInfo buffer;
  buffer.page_bytes = info.page_bytes;
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    CpuRegion region{.cpu = cpu, .offset = 0, .bytes = 0, .file = {}};
    region.offset = in.read<std::uint64_t>("offset of CPU data");
    region.bytes = in.read<std::uint64_t>("size of CPU data");
    // The recorder reserves the table and fills in each CPU when it is written;
    // one without data has a place too.
    if (region.offset == 0) {
      info.damage.push_back(ParseError("unfinished-trace", "flyrecord table", 0,
                                       "data of cpu " + std::to_string(cpu) +
                                           " were never written: the recorder did not finish",
                                       cpu)
                                .message());
    }
    buffer.regions.push_back(region);
  }
  return buffer;
}

// The options that lie before the pages; ends behind the option with id 0.
std::vector<NamedBuffer> parse_options(SectionReader& in, TraceInfo& info) {
  std::vector<NamedBuffer> buffers;
  for (std::size_t i = 0; i < kMaxOptions; ++i) {
    const auto id = in.read<std::uint16_t>("option id");
    if (static_cast<Option>(id) == Option::kDone) return buffers;
    const auto bytes = in.read<std::uint32_t>("option size");
    SectionReader body("options", 0, ByteReader(in.bytes("option", bytes), info.order));
    if (parse_common_option(id, body, info)) continue;
    if (static_cast<Option>(id) == Option::kBuffer) {
      NamedBuffer buffer;
      buffer.offset = body.read<std::uint64_t>("offset of a buffer");
      buffer.name = body.text_until_nul("buffer name");
      buffers.push_back(std::move(buffer));
    }
  }
  in.fail("too-many-options", "more than " + std::to_string(kMaxOptions) + " options");
}

// Before the option held it, the clock's text stood behind the table of CPUs.
std::string trailing_clock(SectionReader& in) {
  constexpr std::uint64_t kMaxClockText = 4096;
  if (in.left() < 8) return {};
  const auto bytes = in.read<std::uint64_t>("size of the clock");
  if (bytes > std::min<std::uint64_t>(kMaxClockText, in.left())) return {};
  return selected_clock(in.sized_text("clock", bytes));
}

// Returns where the table of the buffer ends.
std::uint64_t read_named_buffer(const InputFile& file, const NamedBuffer& named,
                                std::uint32_t cpus, TraceInfo& info) {
  info.regions_count += cpus;
  if (info.regions_count > kMaxRegions) {
    throw ParseError("too-many-cpus", "buffer " + named.name, named.offset,
                     "found more than " + std::to_string(kMaxRegions) +
                         " CPUs in all buffers together");
  }
  std::vector<std::byte> raw(kTagBytes + std::size_t{cpus} * 16);
  raw.resize(file.read_some(named.offset, raw));
  SectionReader in("buffer " + named.name, named.offset, ByteReader(raw, info.order));
  in.expect("flyrecord tag", kTagFlyrecord);
  BufferInfo buffer = parse_regions(in, cpus, info);
  buffer.name = named.name;
  info.buffers.push_back(std::move(buffer));
  return named.offset + in.position();
}

// tables_end has, for each buffer, where its table ends. Its data begin at the
// next page (trace-cmd writes the clock in between) and go on until the table
// of the next buffer, or the end.
void set_data_ranges(std::uint64_t file_bytes, const std::vector<std::uint64_t>& tables_end,
                     TraceInfo& info) {
  for (std::size_t i = 0; i < info.buffers.size(); ++i) {
    BufferInfo& buffer = info.buffers[i];
    buffer.data_begin = (tables_end[i] + info.page_bytes - 1) / info.page_bytes * info.page_bytes;
    buffer.data_end = file_bytes;
    for (const std::uint64_t end : tables_end) {
      const std::uint64_t table = end - kTagBytes - buffer.regions.size() * 16;
      if (table > tables_end[i]) buffer.data_end = std::min(buffer.data_end, table);
    }
  }
}

}  // namespace

void read_container_v6(const InputFile& file, std::uint64_t offset, TraceInfo& info) {
  // All that stands before the pages: formats, kallsyms, options.
  std::vector<std::byte> raw(
      static_cast<std::size_t>(std::min(file.size() - offset, kMaxSectionBytes)));
  raw.resize(file.read_some(offset, raw));
  SectionReader in("version 6 header", offset, ByteReader(raw, info.order));

  parse_header_info(in, info);
  parse_ftrace_formats(in, info);
  parse_event_formats(in, info);
  const auto kallsyms_bytes = in.read<std::uint32_t>("kallsyms size");
  info.kallsyms = TextPlace{.offset = offset + in.position(), .bytes = kallsyms_bytes};
  (void)in.bytes("kallsyms", kallsyms_bytes);
  parse_printk_formats_text(in, info);
  parse_cmdlines(in, info);
  const auto cpus = in.read<std::uint32_t>("count of CPUs");
  if (cpus > kMaxCpus) {
    in.fail("too-many-cpus", "found " + std::to_string(cpus) + " CPUs, at most " +
                                 std::to_string(kMaxCpus) + " are read");
  }
  info.cpus_count = cpus;

  std::vector<NamedBuffer> named;
  auto tag = as_text(in.bytes("section tag", kTagBytes));
  if (tag == kTagOptions) {
    named = parse_options(in, info);
    tag = as_text(in.bytes("section tag", kTagBytes));
  }
  if (tag == kTagLatency) throw_latency("version 6 header", offset + in.position() - kTagBytes);
  if (tag != kTagFlyrecord) in.fail("wrong-tag", "found no flyrecord tag where it belongs");
  // Option CPUCOUNT overrides the count before the options (trace-cmd 2.9+).
  const std::uint32_t regions = std::min(info.cpus_count, kMaxCpus);
  info.buffers.push_back(parse_regions(in, regions, info));
  std::vector<std::uint64_t> tables_end{offset + in.position()};
  if (info.clock.empty()) info.clock = trailing_clock(in);
  for (const auto& buffer : named) {
    try {
      tables_end.push_back(read_named_buffer(file, buffer, regions, info));
    } catch (const ParseError& error) {
      info.damage.push_back(error.message());
    }
  }
  set_data_ranges(file.size(), tables_end, info);
}

}  // namespace wbscope
