// SPDX-License-Identifier: Apache-2.0
// Contents that versions 6 and 7 share: event formats, options, strings.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/byte_reader.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// A ByteReader over one section that knows where it lies in the file, so that
// running out of bytes becomes a ParseError with section and offset.
class SectionReader {
 public:
  SectionReader(std::string section, std::uint64_t file_offset, ByteReader reader)
      : section_(std::move(section)), file_offset_(file_offset), reader_(reader) {}

  template <typename T>
  [[nodiscard]] T read(const char* what) {
    if (const auto value = reader_.read<T>()) return *value;
    fail_short(what, sizeof(T));
  }
  // A text whose length stands before it. Raises: ParseError when it is longer
  // than the section.
  [[nodiscard]] std::string sized_text(const char* what, std::uint64_t bytes);
  [[nodiscard]] std::string text_until_nul(const char* what);
  [[nodiscard]] std::span<const std::byte> bytes(const char* what, std::uint64_t count);
  void expect(const char* what, std::string_view wanted);

  [[nodiscard]] std::size_t left() const noexcept { return reader_.left(); }
  [[nodiscard]] std::size_t position() const noexcept { return reader_.position(); }
  [[noreturn]] void fail(const char* code, const std::string& detail) const;

 private:
  [[noreturn]] void fail_short(const char* what, std::uint64_t wanted) const;

  std::string section_;
  std::uint64_t file_offset_;
  ByteReader reader_;
};

// trace-cmd.dat.v7(5), HEADER INFO SECTION; v6 has the same content.
void parse_header_info(SectionReader& in, TraceInfo& info);
// trace-cmd.dat.v7(5), FTRACE EVENT FORMATS SECTION.
void parse_ftrace_formats(SectionReader& in, TraceInfo& info);
// trace-cmd.dat.v7(5), EVENT FORMATS SECTION.
void parse_event_formats(SectionReader& in, TraceInfo& info);
// trace-cmd.dat.v7(5), SAVED COMMAND LINES SECTION.
void parse_cmdlines(SectionReader& in, TraceInfo& info);

// trace-cmd.dat.v7(5), FTRACE PRINTK SECTION.
void parse_printk_formats_text(SectionReader& in, TraceInfo& info);

// A latency tracer's output is a text of its own, not records.
[[noreturn]] void throw_latency(const std::string& section, std::uint64_t offset);

// Option ids of trace-cmd.dat.v7(5), OPTIONS SECTION.
enum class Option : std::uint16_t {
  kDone = 0,
  kDate = 1,
  kCpuStat = 2,
  kBuffer = 3,
  kTraceClock = 4,
  kUname = 5,
  kOffset = 7,
  kCpuCount = 8,
  kVersion = 9,
  kTraceId = 11,
  kTimeShift = 12,
  kGuest = 13,
  kTsc2Nsec = 14,
  kHeaderInfo = 16,
  kFtraceEvents = 17,
  kEventFormats = 18,
  kKallsyms = 19,
  kPrintk = 20,
  kCmdlines = 21,
  kBufferText = 22,
};

// Options with the same meaning in both versions; true when it was one.
bool parse_common_option(std::uint16_t id, SectionReader& in, TraceInfo& info);

}  // namespace wbscope
