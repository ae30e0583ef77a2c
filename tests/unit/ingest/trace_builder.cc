// SPDX-License-Identifier: Apache-2.0
// Small trace.dat files.
#include "trace_builder.h"

#include <zlib.h>
#include <zstd.h>

#include <stdexcept>

#include "format/event_catalog.h"
#include "pipeline/cpu_stream.h"
#include "tracedat/section_text.h"
#include "tracedat/trace_file.h"

namespace wbscope::testing {
namespace {

constexpr std::uint16_t kOptionsSection = 0, kFlyrecordSection = 3;

std::uint16_t id_of(Option option) { return static_cast<std::uint16_t>(option); }

std::string compressed(const std::string& name, const std::string& data) {
  if (name == "zstd") {
    std::string out(ZSTD_compressBound(data.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 1));
    return out;
  }
  uLongf size = ::compressBound(data.size());
  std::vector<Bytef> out(size);
  const std::vector<Bytef> in(data.begin(), data.end());
  if (::compress(out.data(), &size, in.data(), in.size()) != Z_OK) {
    throw std::runtime_error("zlib");
  }
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)};
}

Bytes initial(const TraceSpec& spec, std::string_view version) {
  Bytes out(spec.order);
  out.text("\x17\x08\x44tracing").cstring(version);
  return out.u8(spec.order == ByteOrder::kBig ? 1 : 0).u8(spec.long_bytes).u32(spec.page_bytes);
}

std::string header_info(const TraceSpec& spec) {
  Bytes out(spec.order);
  out.cstring("header_page").u64(spec.header_page.size()).text(spec.header_page);
  return out.cstring("header_event").u64(4).text("none").str();
}

std::string event_formats(const TraceSpec& spec) {
  Bytes out(spec.order);
  out.u32(spec.formats.size());
  for (const auto& format : spec.formats) {
    out.cstring(format.system).u32(1).u64(format.text.size()).text(format.text);
  }
  return out.str();
}

std::string cmdlines(const TraceSpec& spec) {
  return Bytes(spec.order).u64(spec.cmdlines.size()).text(spec.cmdlines).str();
}

void put_option(Bytes& out, std::uint16_t id, std::string_view data) {
  out.u16(id).u32(data.size()).text(data);
}

// Sections of version 7, and the options that say where they are.
class WriterV7 {
 public:
  explicit WriterV7(const TraceSpec& spec)
      : spec_(spec), out_(initial(spec, "7")), options_(spec.order) {
    out_.cstring(spec.compression).cstring("1");
    options_at_ = out_.size();
    out_.u64(0);
  }

  std::string write() {
    section(id_of(Option::kHeaderInfo), header_info(spec_));
    section(id_of(Option::kFtraceEvents), Bytes(spec_.order).u32(0).str());
    const std::string formats_at = Bytes(spec_.order).u64(out_.size()).str();
    section(id_of(Option::kEventFormats), event_formats(spec_));
    for (unsigned i = 1; i < spec_.formats_named; ++i) {
      put_option(options_, id_of(Option::kEventFormats), formats_at);
    }
    section(id_of(Option::kCmdlines), cmdlines(spec_));
    put_option(options_, id_of(Option::kTraceClock), spec_.clock);
    for (const auto& [id, data] : spec_.options) put_option(options_, id, data);
    buffer("", spec_.cpu_pages);
    if (!spec_.more_pages.empty()) buffer("second", spec_.more_pages);
    put_option(options_, id_of(Option::kDone), Bytes(spec_.order).u64(0).str());
    out_.set_u64(options_at_, out_.size());
    put_section(kOptionsSection, options_.str());
    return out_.str();
  }

 private:
  [[nodiscard]] bool packs() const { return spec_.compression != "none"; }

  void put_section(std::uint16_t id, const std::string& data) {
    const std::string packed = packs() ? compressed(spec_.compression, data) : data;
    out_.u16(id).u16(packs() ? 1 : 0).u32(0).u64(packed.size() + (packs() ? 8 : 0));
    if (packs()) out_.u32(packed.size()).u32(data.size());
    out_.text(packed);
  }

  void section(std::uint16_t id, const std::string& data) {
    put_option(options_, id, Bytes(spec_.order).u64(out_.size()).str());
    put_section(id, data);
  }

  void buffer(std::string_view name, const std::vector<std::string>& cpu_pages) {
    const std::size_t start = out_.size();
    Bytes option(spec_.order);
    option.u64(start).cstring(name).cstring(spec_.clock).u32(spec_.page_bytes);
    option.u32(cpu_pages.size());
    out_.u16(kFlyrecordSection).u16(packs() ? 1 : 0).u32(0).u64(0);
    for (std::uint32_t cpu = 0; cpu < cpu_pages.size(); ++cpu) {
      out_.align(spec_.page_bytes);
      const std::size_t at = out_.size();
      if (packs()) {
        put_chunks(cpu_pages[cpu]);
      } else {
        out_.text(cpu_pages[cpu]);
      }
      option.u32(cpu).u64(at).u64(out_.size() - at);
    }
    out_.set_u64(start + 8, out_.size() - start - 16);
    put_option(options_, id_of(Option::kBuffer), option.str());
  }

  // One page a chunk.
  void put_chunks(const std::string& pages) {
    out_.u32(pages.size() / spec_.page_bytes);
    for (std::size_t at = 0; at < pages.size(); at += spec_.page_bytes) {
      const std::string packed = compressed(spec_.compression, pages.substr(at, spec_.page_bytes));
      out_.u32(packed.size()).u32(spec_.page_bytes).text(packed);
    }
  }

  const TraceSpec& spec_;
  Bytes out_;
  Bytes options_;
  std::size_t options_at_ = 0;
};

// The table of CPU data behind a flyrecord tag; its offsets are filled in later.
std::size_t put_table(Bytes& out, const std::vector<std::string>& cpu_pages) {
  out.text(std::string_view("flyrecord\0", 10));
  const std::size_t table = out.size();
  for (const auto& pages : cpu_pages) out.u64(0).u64(pages.size());
  return table;
}

void put_pages(Bytes& out, std::size_t table, const TraceSpec& spec,
               const std::vector<std::string>& cpu_pages) {
  for (const auto& pages : cpu_pages) {
    out.align(spec.page_bytes).set_u64(table, out.size());
    out.text(pages);
    table += 16;
  }
}

// What build_event_catalog() makes of tiny_format(), without the child process
// that it starts. Without any format there is no event.
EventCatalog tiny_catalog(const TraceInfo& info) {
  EventCatalog catalog;
  catalog.page.commit_bytes = info.long_bytes;
  catalog.page.data_offset = 8 + info.long_bytes;
  if (info.formats.empty()) return catalog;
  EventPlan plan;
  plan.id = kTinyId;
  plan.min_bytes = 12;
  catalog.events.push_back(plan);
  return catalog;
}

}  // namespace

std::string build_v6(const TraceSpec& spec) {
  Bytes out = initial(spec, "6");
  out.text(header_info(spec)).u32(0).text(event_formats(spec));
  out.u32(3).text("sym").u32(2).text("fm").text(cmdlines(spec)).u32(spec.cpu_pages.size());
  out.text(std::string_view("options  \0", 10));
  put_option(out, id_of(Option::kTraceClock), spec.clock);
  for (const auto& [id, data] : spec.options) put_option(out, id, data);
  std::size_t second_at = 0;
  if (!spec.more_pages.empty()) {
    second_at = out.size() + 6;
    put_option(out, id_of(Option::kBuffer), Bytes(spec.order).u64(0).cstring("second").str());
  }
  out.u16(0);
  put_pages(out, put_table(out, spec.cpu_pages), spec, spec.cpu_pages);
  if (second_at != 0) {
    out.set_u64(second_at, out.size());
    put_pages(out, put_table(out, spec.more_pages), spec, spec.more_pages);
  }
  return out.str();
}

std::string build_v7(const TraceSpec& spec) { return WriterV7(spec).write(); }

TraceSpec small_trace() {
  TraceSpec spec;
  for (std::uint32_t cpu = 0; cpu < 2; ++cpu) {
    const auto record = [&](std::uint32_t n) { return tiny_record(spec.order, 11, 10 * cpu + n); };
    const std::string first = PageBuilder().start(1000).record(0, record(0)).build();
    const auto second = PageBuilder().start(2000).record(0, record(1)).record(23, record(2));
    spec.cpu_pages.push_back(first + second.build());
  }
  return spec;
}

TraceSpec one_event_of_32_bits() {
  TraceSpec spec;
  spec.order = ByteOrder::kBig;
  spec.long_bytes = 4;
  spec.header_page = header_page_text(4);
  const std::string record = tiny_record(spec.order, 11, 5);
  spec.cpu_pages = {PageBuilder(ByteOrder::kBig, 4).start(9).record(1, record).build()};
  return spec;
}

ReadBack read_back(const std::string& path) {
  const InputFile file(path);
  ReadBack back;
  back.info = read_trace_info(file);
  const EventCatalog catalog = tiny_catalog(back.info);
  const EventDispatch dispatch(catalog, std::vector<bool>(catalog.events.size(), true));
  for (std::uint32_t b = 0; b < back.info.buffers.size(); ++b) {
    for (const auto& region : back.info.buffers[b].regions) {
      CpuStream stream(file, back.info, b, region, dispatch, 4096);
      RecordBlock block;
      while (stream.fill(block)) block.clear();
      for (const auto& [event, count] : stream.counts()) back.events += count;
      if (stream.damage()) back.page_damage.push_back(*stream.damage());
    }
  }
  return back;
}

std::string check_every_truncation(const std::string& file, std::uint64_t events) {
  const TempDir dir;
  std::string wrong;
  std::uint64_t complete = 0;
  for (std::size_t bytes = 0; bytes <= file.size(); ++bytes) {
    const std::string path = dir.write("trace.dat", std::string_view(file).substr(0, bytes));
    const std::string where = "cut at " + std::to_string(bytes) + ": ";
    try {
      const ReadBack back = read_back(path);
      if (back.events > events) wrong += where + "more events than there are\n";
      if (back.events == events) ++complete;
      // Without buffers or formats the program ends with error[no-buffers].
      const bool told =
          back.damaged() || back.info.buffers.empty() || back.info.formats.empty();
      if (back.events < events && !told) wrong += where + "events are missing, none said so\n";
    } catch (const Error& error) {
      if (error.exit_code() != Exit::kInput) wrong += where + "exit code is not 3\n";
      if (error.message().text.empty()) wrong += where + "error without a text\n";
    }
  }
  if (complete == 0) wrong += "not even the whole file gives all events\n";
  return wrong;
}

std::string check_every_inversion(const std::string& file, std::uint64_t events) {
  const TempDir dir;
  std::string wrong;
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string bad = file;
    bad[at] = static_cast<char>(~bad[at]);
    const std::string where = "byte " + std::to_string(at) + ": ";
    try {
      const ReadBack back = read_back(dir.write("trace.dat", bad));
      if (back.events > events) wrong += where + "more events than there are\n";
    } catch (const Error& error) {
      if (error.exit_code() != Exit::kInput) wrong += where + "exit code is not 3\n";
    }
  }
  return wrong;
}

}  // namespace wbscope::testing
