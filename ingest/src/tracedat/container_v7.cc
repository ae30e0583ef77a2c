// SPDX-License-Identifier: Apache-2.0
// trace.dat version 7: sections found through options (trace-cmd.dat.v7(5)).
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "tracedat/cpu_files.h"
#include "tracedat/decompress.h"
#include "tracedat/section_text.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

constexpr std::uint64_t kSectionHeaderBytes = 16;
constexpr std::uint16_t kSectionCompressed = 1;
constexpr std::uint16_t kIdOptions = 0;
constexpr std::uint16_t kIdFlyrecord = 3;
constexpr std::uint16_t kMaxSectionId = 64;
constexpr std::size_t kMaxSections = 4096;

struct SectionHeader {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  std::uint64_t bytes = 0;
};

class ContainerV7 {
 public:
  ContainerV7(const InputFile& file, TraceInfo& info) : file_(file), info_(info) {}

  void read(std::uint64_t offset);
  [[nodiscard]] std::vector<std::byte> section_data(std::uint16_t id, std::uint64_t offset,
                                                    const std::string& name);

 private:
  [[nodiscard]] SectionHeader section_header(std::uint64_t offset, const std::string& name) const;
  // Raises: ParseError when the section there is not the one with this id.
  [[nodiscard]] SectionHeader section_header(std::uint16_t id, std::uint64_t offset,
                                             const std::string& name) const;
  void bound_by_neighbours(BufferInfo& buffer);
  void count_section_bytes(std::uint64_t bytes, std::uint64_t offset, const std::string& name);
  void check_size(std::uint64_t offset, const std::string& name) const;
  void parse_section(std::uint16_t id, std::uint64_t offset);
  void parse_options(std::uint64_t offset);
  void parse_buffer_option(SectionReader& in);
  void salvage(std::uint64_t first_section);
  void salvage_flyrecord(std::uint64_t offset, const SectionHeader& header);
  void salvage_chunks(std::uint64_t at, std::uint64_t end, BufferInfo& buffer);
  void salvage_pages(std::uint64_t at, std::uint64_t end, BufferInfo& buffer);
  [[nodiscard]] std::uint64_t align(std::uint64_t at) const noexcept {
    return (at + info_.page_bytes - 1) / info_.page_bytes * info_.page_bytes;
  }
  void note_damage(const ParseError& error) { info_.damage.push_back(error.message()); }

  const InputFile& file_;
  TraceInfo& info_;
  std::uint64_t section_bytes_ = 0;
  std::optional<std::uint64_t> latency_at_;
};

SectionHeader ContainerV7::section_header(std::uint64_t offset, const std::string& name) const {
  std::vector<std::byte> raw(kSectionHeaderBytes);
  if (file_.read_some(offset, raw) != raw.size()) {
    throw ParseError("truncated-trace", name, offset,
                     "section header lies at or behind the file's end (" +
                         std::to_string(file_.size()) + " bytes)");
  }
  SectionHeader header;
  header.id = load<std::uint16_t>(raw.data(), info_.order);
  header.flags = load<std::uint16_t>(raw.data() + 2, info_.order);
  header.bytes = load<std::uint64_t>(raw.data() + 8, info_.order);
  return header;
}

SectionHeader ContainerV7::section_header(std::uint16_t id, std::uint64_t offset,
                                          const std::string& name) const {
  const SectionHeader header = section_header(offset, name);
  if (header.id == id) return header;
  throw ParseError("wrong-section", name, offset,
                   "found a section with id " + std::to_string(header.id) + ", wanted " +
                       std::to_string(id));
}

// Options may name one section again and again; what is kept of it must not
// grow without end.
void ContainerV7::count_section_bytes(std::uint64_t bytes, std::uint64_t offset,
                                      const std::string& name) {
  section_bytes_ += bytes;
  if (section_bytes_ <= kMaxAllSectionBytes) return;
  throw ParseError("sections-too-large", name, offset,
                   "sections claim more than " + std::to_string(kMaxAllSectionBytes) +
                       " bytes together");
}

namespace {

[[noreturn]] void throw_too_large(const std::string& name, std::uint64_t offset,
                                  std::uint64_t bytes, const char* what) {
  throw ParseError("section-too-large", name, offset,
                   "section claims " + std::to_string(bytes) + " bytes" + what + ", at most " +
                       std::to_string(kMaxSectionBytes) + " are read");
}

constexpr const char* kUncompressed = " uncompressed";

}  // namespace

// Of a section that is whole; what else may be wrong is found when it is read.
void ContainerV7::check_size(std::uint64_t offset, const std::string& name) const {
  std::vector<std::byte> raw(kSectionHeaderBytes + 2 * sizeof(std::uint32_t));
  if (file_.read_some(offset, raw) != raw.size()) return;
  const SectionHeader header = section_header(offset, name);
  if (header.bytes > kMaxSectionBytes) throw_too_large(name, offset, header.bytes, "");
  if ((header.flags & kSectionCompressed) == 0) return;
  const auto unpacked = load<std::uint32_t>(raw.data() + kSectionHeaderBytes + 4, info_.order);
  if (unpacked > kMaxSectionBytes) throw_too_large(name, offset, unpacked, kUncompressed);
}

// trace-cmd.dat.v7(5), COMPRESSION FORMAT OF THE FILE SECTIONS.
std::vector<std::byte> ContainerV7::section_data(std::uint16_t id, std::uint64_t offset,
                                                 const std::string& name) {
  const SectionHeader header = section_header(id, offset, name);
  const std::uint64_t start = offset + kSectionHeaderBytes;
  if (header.bytes > kMaxSectionBytes) throw_too_large(name, offset, header.bytes, "");
  if (start + header.bytes > file_.size()) {
    throw ParseError("truncated-trace", name, offset,
                     "section holds " + std::to_string(file_.size() - start) + " of " +
                         std::to_string(header.bytes) + " bytes");
  }
  count_section_bytes(header.bytes, offset, name);
  std::vector<std::byte> raw(header.bytes);
  raw.resize(file_.read_some(start, raw));
  if ((header.flags & kSectionCompressed) == 0) return raw;

  ByteReader in(raw, info_.order);
  const auto packed = in.read<std::uint32_t>();
  const auto unpacked = in.read<std::uint32_t>();
  const auto data = packed ? in.take(*packed) : std::nullopt;
  if (!unpacked || !data) {
    throw ParseError("truncated-section", name, start,
                     "compressed section is shorter than its header says");
  }
  if (*unpacked > kMaxSectionBytes) throw_too_large(name, start, *unpacked, kUncompressed);
  count_section_bytes(*unpacked, offset, name);
  std::vector<std::byte> out(*unpacked);
  const std::string problem = Decompressor(info_.compression).run(*data, out);
  if (!problem.empty()) throw ParseError("bad-compression", name, start, problem);
  return out;
}

void ContainerV7::parse_section(std::uint16_t id, std::uint64_t offset) {
  const auto with = [&](const char* name, auto parse) {
    const auto data = section_data(id, offset, name);
    SectionReader in(name, offset, ByteReader(data, info_.order));
    parse(in, info_);
  };
  switch (static_cast<Option>(id)) {
    case Option::kHeaderInfo:
      return with("HEADER INFO", parse_header_info);
    case Option::kFtraceEvents:
      return with("FTRACE EVENT FORMATS", parse_ftrace_formats);
    case Option::kEventFormats:
      return with("EVENT FORMATS", parse_event_formats);
    case Option::kCmdlines:
      try {
        with("SAVED COMMAND LINES", parse_cmdlines);
      } catch (const ParseError& error) {
        note_damage(error);  // names are missing, events are not
      }
      return;
    case Option::kPrintk:
      try {
        with("FTRACE PRINTK", parse_printk_formats_text);
      } catch (const ParseError& error) {
        note_damage(error);
      }
      return;
    case Option::kKallsyms:
      info_.kallsyms = TextPlace{.offset = offset, .bytes = 0};
      try {
        check_size(offset, "KALLSYMS");  // it is read later, if ever
      } catch (const ParseError& error) {
        info_.kallsyms.reset();
        note_damage(error);
      }
      return;
    default:
      return;
  }
}

// trace-cmd.dat.v7(5), OPTIONS SECTION. Sections form a chain through DONE.
void ContainerV7::parse_options(std::uint64_t offset) {
  std::set<std::uint64_t> seen;
  std::size_t options = 0;
  while (offset != 0) {
    if (!seen.insert(offset).second) {
      throw ParseError("options-loop", "OPTIONS", offset, "options sections form a loop");
    }
    const auto data = section_data(kIdOptions, offset, "OPTIONS");
    const std::uint64_t section = offset;
    SectionReader in("OPTIONS", section, ByteReader(data, info_.order));
    offset = 0;
    for (bool done = false; !done;) {
      if (in.left() == 0) in.fail("no-done-option", "options end without the option DONE");
      if (++options > kMaxOptions) in.fail("too-many-options", "more than 65536 options");
      const auto id = in.read<std::uint16_t>("option id");
      const auto bytes = in.read<std::uint32_t>("option size");
      SectionReader body("OPTIONS", section, ByteReader(in.bytes("option", bytes), info_.order));
      if (static_cast<Option>(id) == Option::kDone) {
        offset = body.read<std::uint64_t>("offset of the next options");
        done = true;
        continue;
      }
      if (parse_common_option(id, body, info_)) continue;
      if (static_cast<Option>(id) == Option::kBuffer) {
        parse_buffer_option(body);
      } else if (static_cast<Option>(id) == Option::kBufferText) {
        latency_at_ = body.read<std::uint64_t>("offset of a latency trace");
      } else if (id >= static_cast<std::uint16_t>(Option::kHeaderInfo) &&
                 id <= static_cast<std::uint16_t>(Option::kCmdlines)) {
        parse_section(id, body.read<std::uint64_t>("offset of a section"));
      }
    }
  }
}

// The size of compressed CPU data leaves out the chunk headers (seen in files
// of trace-cmd 3.1), so data may reach to the next CPU's or the section's end.
void ContainerV7::bound_by_neighbours(BufferInfo& buffer) {
  std::vector<std::uint64_t> ends{buffer.data_end};
  for (const auto& region : buffer.regions) {
    if (region.bytes > 0) ends.push_back(region.offset);
  }
  std::sort(ends.begin(), ends.end());
  for (auto& region : buffer.regions) {
    if (region.bytes == 0) continue;
    const bool inside = region.offset >= buffer.data_begin && region.offset < buffer.data_end;
    if (!inside) {
      note_damage(ParseError("data-outside-section", "BUFFER FLYRECORD", region.offset,
                             "data start outside of their section, bytes " +
                                 std::to_string(buffer.data_begin) + " to " +
                                 std::to_string(buffer.data_end),
                             region.cpu));
    }
    const auto end = std::upper_bound(ends.begin(), ends.end(), region.offset);
    region.bytes = (end == ends.end() ? std::max(file_.size(), region.offset) : *end) -
                   region.offset;
  }
}

// trace-cmd.dat.v7(5), BUFFER option.
void ContainerV7::parse_buffer_option(SectionReader& in) {
  BufferInfo buffer;
  const auto offset = in.read<std::uint64_t>("offset of a buffer");
  buffer.name = in.text_until_nul("buffer name");
  buffer.clock = selected_clock(in.text_until_nul("buffer clock"));
  buffer.page_bytes = in.read<std::uint32_t>("buffer page size");
  if (buffer.page_bytes < kMinPageBytes || buffer.page_bytes > kMaxPageBytes) {
    in.fail("bad-page-size", "buffer page size is " + std::to_string(buffer.page_bytes) +
                                 ", wanted 512 to 1048576");
  }
  const auto cpus = in.read<std::uint32_t>("count of CPUs");
  if (cpus > kMaxCpus) {
    in.fail("too-many-cpus", "found " + std::to_string(cpus) + " CPUs, at most " +
                                 std::to_string(kMaxCpus) + " are read");
  }
  info_.regions_count += cpus;
  if (info_.regions_count > kMaxRegions) {
    in.fail("too-many-cpus", "found more than " + std::to_string(kMaxRegions) +
                                 " CPUs in all buffers together");
  }
  for (std::uint32_t i = 0; i < cpus; ++i) {
    CpuRegion region;
    region.cpu = in.read<std::uint32_t>("CPU number");
    if (region.cpu >= kMaxCpus) {
      in.fail("bad-cpu", "found CPU number " + std::to_string(region.cpu) + ", wanted below " +
                             std::to_string(kMaxCpus));
    }
    region.offset = in.read<std::uint64_t>("offset of CPU data");
    region.bytes = in.read<std::uint64_t>("size of CPU data");
    buffer.regions.push_back(region);
  }
  const SectionHeader header = section_header(kIdFlyrecord, offset, "BUFFER FLYRECORD");
  buffer.compressed = (header.flags & kSectionCompressed) != 0;
  buffer.data_begin = offset + kSectionHeaderBytes;
  buffer.data_end = buffer.data_begin + std::min(header.bytes, file_.size());
  if (buffer.compressed) bound_by_neighbours(buffer);
  info_.buffers.push_back(std::move(buffer));
}

// A file that was cut short has lost the options at its end, which say where
// the pages are. Sections follow one another, so walk them instead.
void ContainerV7::salvage(std::uint64_t first_section) {
  std::uint64_t offset = first_section;
  const bool want_buffers = info_.buffers.empty();
  for (std::size_t i = 0; i < kMaxSections && offset + kSectionHeaderBytes <= file_.size(); ++i) {
    const SectionHeader header = section_header(offset, "SECTION");
    if (header.id > kMaxSectionId) return;
    try {
      if (header.id == kIdFlyrecord) {
        if (want_buffers) salvage_flyrecord(offset, header);
      } else if (header.id != kIdOptions &&  // followed by parse_options() as far as they go
                 (info_.formats.empty() || info_.header_page.empty())) {
        parse_section(header.id, offset);
      }
    } catch (const ParseError& error) {
      note_damage(error);
    }
    if (header.bytes > file_.size() || (header.bytes == 0 && header.id == kIdFlyrecord)) return;
    offset += kSectionHeaderBytes + header.bytes;
  }
}

void ContainerV7::salvage_flyrecord(std::uint64_t offset, const SectionHeader& header) {
  BufferInfo buffer;
  if (!info_.buffers.empty()) buffer.name = "buffer " + std::to_string(info_.buffers.size());
  buffer.clock = info_.clock;
  buffer.page_bytes = info_.page_bytes;
  buffer.compressed = (header.flags & kSectionCompressed) != 0;
  // CPU data start on page borders.
  const std::uint64_t start = align(offset + kSectionHeaderBytes);
  // The size is written last, so a killed recorder leaves 0.
  const std::uint64_t end =
      header.bytes == 0 ? file_.size()
                        : std::min(file_.size(), offset + kSectionHeaderBytes + header.bytes);
  if (buffer.compressed) {
    salvage_chunks(start, end, buffer);
  } else {
    salvage_pages(start, end, buffer);
  }
  info_.buffers.push_back(std::move(buffer));
}

// Of each CPU a count of chunks, then the chunks.
void ContainerV7::salvage_chunks(std::uint64_t at, std::uint64_t end, BufferInfo& buffer) {
  std::vector<std::byte> raw(8);
  while (at + 4 <= end && buffer.regions.size() < kMaxCpus) {
    CpuRegion region{.cpu = static_cast<std::uint32_t>(buffer.regions.size()), .offset = at,
                     .bytes = 0, .file = {}};
    if (file_.read_some(at, std::span(raw).first(4)) != 4) break;
    const auto chunks = load<std::uint32_t>(raw.data(), info_.order);
    std::uint64_t next = at + 4;
    for (std::uint32_t i = 0; i < chunks; ++i) {
      if (file_.read_some(next, raw) != raw.size()) {
        next = file_.size();  // cut here; the page source will say so
        break;
      }
      next += raw.size() + load<std::uint32_t>(raw.data(), info_.order);
    }
    region.bytes = next - at;
    buffer.regions.push_back(region);
    if (next >= file_.size()) break;
    at = align(next);
  }
}

// Nothing in a page tells its CPU. All CPUs record at the same time, so time
// goes back from the last page of one to the first of the next.
void ContainerV7::salvage_pages(std::uint64_t at, std::uint64_t end, BufferInfo& buffer) {
  note_damage(ParseError("lost-buffer-table", "BUFFER FLYRECORD", at,
                         "the table of CPUs is gone; CPUs were told apart where the time of "
                         "pages goes back, so their numbers are guesses"));
  std::vector<std::byte> head(8 + info_.long_bytes);
  std::uint64_t last_ts = 0;
  bool in_region = false;
  for (; at + head.size() <= end; at += info_.page_bytes) {
    if (file_.read_some(at, head) != head.size()) break;
    const auto ts = load<std::uint64_t>(head.data(), info_.order);
    const std::uint64_t commit = info_.long_bytes == 8
                                     ? load<std::uint64_t>(head.data() + 8, info_.order)
                                     : load<std::uint32_t>(head.data() + 8, info_.order);
    constexpr std::uint64_t kCommitMask = (1u << 27) - 1;
    const std::uint64_t used = commit & kCommitMask;
    if (used == 0 || used > info_.page_bytes - head.size()) {
      in_region = false;
      continue;
    }
    if (!in_region || ts < last_ts) {
      if (buffer.regions.size() == kMaxCpus) break;
      buffer.regions.push_back({.cpu = static_cast<std::uint32_t>(buffer.regions.size()),
                                .offset = at,
                                .bytes = 0,
                                .file = {}});
    }
    in_region = true;
    last_ts = ts;
    buffer.regions.back().bytes += std::min<std::uint64_t>(info_.page_bytes, end - at);
  }
}

void ContainerV7::read(std::uint64_t offset) {
  std::vector<std::byte> head(256);
  head.resize(file_.read_some(offset, head));
  SectionReader in("INITIAL FORMAT", offset, ByteReader(head, info_.order));
  info_.compression_name = in.text_until_nul("compression name");
  (void)in.text_until_nul("compression version");
  const auto compression = compression_by_name(info_.compression_name);
  if (!compression) {
    in.fail("unknown-compression", "found compression \"" + info_.compression_name +
                                       "\", wanted zstd, zlib or none");
  }
  info_.compression = *compression;
  const auto options = in.read<std::uint64_t>("offset of the first options section");
  const std::uint64_t first_section = offset + in.position();

  if (options == 0) {
    note_damage(ParseError("no-options", "INITIAL FORMAT", first_section - 8,
                           "the recorder never wrote its options (it was killed)"));
  }
  try {
    parse_options(options);
  } catch (const ParseError& error) {
    note_damage(error);
  }
  if (latency_at_ && info_.buffers.empty()) throw_latency("BUFFER TEXT", *latency_at_);
  if (info_.buffers.empty() && info_.damage.empty()) {
    note_damage(ParseError("unfinished-trace", "OPTIONS", options,
                           "no option tells where records are: the recorder did not finish"));
  }
  // What the recorder left beside the file is whole, and its CPUs are known.
  if (info_.buffers.empty()) attach_cpu_files(file_, info_);
  if (info_.buffers.empty() || info_.formats.empty() || info_.header_page.empty()) {
    salvage(first_section);
  }
}

}  // namespace

void read_container_v7(const InputFile& file, std::uint64_t offset, TraceInfo& info) {
  ContainerV7(file, info).read(offset);
}

std::string read_kallsyms(const InputFile& file, const TraceInfo& info) {
  if (!info.kallsyms) return {};
  const TextPlace place = *info.kallsyms;
  if (info.version == 6) {
    std::string text(static_cast<std::size_t>(place.bytes), '\0');
    text.resize(file.read_some(place.offset, std::as_writable_bytes(std::span(text))));
    return text;
  }
  TraceInfo reading;
  reading.order = info.order;
  reading.compression = info.compression;
  const auto data = ContainerV7(file, reading).section_data(
      static_cast<std::uint16_t>(Option::kKallsyms), place.offset, "KALLSYMS");
  SectionReader in("KALLSYMS", place.offset, ByteReader(data, info.order));
  return in.sized_text("kallsyms", in.read<std::uint32_t>("kallsyms size"));
}

}  // namespace wbscope
