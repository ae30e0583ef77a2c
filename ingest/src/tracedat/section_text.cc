// SPDX-License-Identifier: Apache-2.0
// Contents that versions 6 and 7 share: event formats, options, strings.
#include "tracedat/section_text.h"

#include <algorithm>
#include <cstdlib>

namespace wbscope {
namespace {

constexpr std::size_t kMaxNameBytes = 4096;
constexpr std::int64_t kNsPerUs = 1000;

// Options hold numbers as text, decimal or 0x-hexadecimal (trace-cmd uses
// strtoll with base 0).
std::int64_t number(std::string_view text) {
  return std::strtoll(std::string(text).c_str(), nullptr, 0);
}

// Wraps instead of overflowing: a hostile offset must not be undefined.
std::int64_t add_offset(std::int64_t sum, std::int64_t value, std::int64_t unit_ns) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                   static_cast<std::uint64_t>(value) *
                                       static_cast<std::uint64_t>(unit_ns));
}

std::string without_trailing_nul(std::span<const std::byte> bytes) {
  std::string_view text = as_text(bytes);
  text = text.substr(0, text.find('\0'));
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

void SectionReader::fail(const char* code, const std::string& detail) const {
  throw ParseError(code, section_, file_offset_ + reader_.position(), detail);
}

void SectionReader::fail_short(const char* what, std::uint64_t wanted) const {
  fail("truncated-section", std::string(what) + " needs " + std::to_string(wanted) +
                                " bytes, the section has " + std::to_string(reader_.left()) +
                                " left");
}

std::span<const std::byte> SectionReader::bytes(const char* what, std::uint64_t count) {
  if (const auto view = reader_.take(count)) return *view;
  fail_short(what, count);
}

std::string SectionReader::sized_text(const char* what, std::uint64_t count) {
  return std::string(as_text(bytes(what, count)));
}

std::string SectionReader::text_until_nul(const char* what) {
  if (const auto text = reader_.cstring(kMaxNameBytes)) return std::string(*text);
  fail("unterminated-text", std::string(what) + " has no NUL within " +
                                std::to_string(std::min(kMaxNameBytes, reader_.left())) +
                                " bytes");
}

void SectionReader::expect(const char* what, std::string_view wanted) {
  const auto found = as_text(bytes(what, wanted.size()));
  if (found != wanted) {
    fail("wrong-tag", std::string("found no ") + what + " where it belongs");
  }
}

void parse_header_info(SectionReader& in, TraceInfo& info) {
  in.expect("header_page", std::string_view("header_page\0", 12));
  info.header_page = in.sized_text("header_page", in.read<std::uint64_t>("header_page size"));
  in.expect("header_event", std::string_view("header_event\0", 13));
  (void)in.sized_text("header_event", in.read<std::uint64_t>("header_event size"));
}

void parse_ftrace_formats(SectionReader& in, TraceInfo& info) {
  const auto count = in.read<std::uint32_t>("count of ftrace formats");
  if (count > kMaxFormats) {
    in.fail("too-many-formats", "found " + std::to_string(count) + " ftrace formats, at most " +
                                    std::to_string(kMaxFormats) + " are read");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    info.formats.push_back(
        {"ftrace", in.sized_text("ftrace format", in.read<std::uint64_t>("format size"))});
  }
}

void parse_event_formats(SectionReader& in, TraceInfo& info) {
  const auto systems = in.read<std::uint32_t>("count of event systems");
  for (std::uint32_t s = 0; s < systems; ++s) {
    const std::string system = in.text_until_nul("name of an event system");
    if (std::any_of(system.begin(), system.end(), [](unsigned char c) { return c <= ' '; })) {
      in.fail("bad-system-name", "name of an event system holds a blank or a control character");
    }
    const auto count = in.read<std::uint32_t>("count of events");
    if (info.formats.size() + count > kMaxFormats) {
      in.fail("too-many-formats", "system " + system + " has " + std::to_string(count) +
                                      " formats, at most " + std::to_string(kMaxFormats) +
                                      " are read in all");
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      info.formats.push_back(
          {system, in.sized_text("event format", in.read<std::uint64_t>("format size"))});
    }
  }
}

void parse_cmdlines(SectionReader& in, TraceInfo& info) {
  info.cmdlines =
      in.sized_text("saved command lines", in.read<std::uint64_t>("command lines size"));
}

void parse_printk_formats_text(SectionReader& in, TraceInfo& info) {
  info.printk_formats =
      in.sized_text("printk formats", in.read<std::uint32_t>("printk formats size"));
}

void throw_latency(const std::string& section, std::uint64_t offset) {
  ParseError error("latency-trace", section, offset,
                   "found the text of a latency tracer, wanted ring-buffer pages");
  error.message().fix = "trace-cmd report prints it; record events with: trace-cmd record -e ...";
  throw error;
}

namespace {

// Times, offsets and ratios of each CPU, then the fractions of all: added in
// trace-cmd 3.0, so they may be missing.
void parse_time_shift(SectionReader& in, TraceInfo& info) {
  ClockShift shift;
  shift.peer_trace_id = in.read<std::uint64_t>("trace id of the host");
  shift.flags = in.read<std::uint32_t>("flags of the time shift");
  const auto cpus = in.read<std::uint32_t>("count of CPUs");
  if (cpus > kMaxCpus) in.fail("too-many-cpus", "time shift of " + std::to_string(cpus) + " CPUs");
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    const auto count = in.read<std::uint32_t>("count of samples");
    if (count > in.left() / 24) {
      in.fail("truncated-section", "found " + std::to_string(count) +
                                       " samples of the clock, and room for " +
                                       std::to_string(in.left() / 24));
    }
    std::vector<ShiftSample> samples(count);
    for (auto& each : samples) each.time = in.read<std::int64_t>("time of a sample");
    for (auto& each : samples) each.offset = in.read<std::int64_t>("offset of a sample");
    for (auto& each : samples) each.scaling = in.read<std::int64_t>("scaling of a sample");
    shift.cpus.push_back(std::move(samples));
  }
  for (auto& samples : shift.cpus) {
    if (in.left() == 0) break;
    for (auto& each : samples) {
      each.fraction = static_cast<std::uint32_t>(in.read<std::uint64_t>("fraction of a sample"));
    }
  }
  for (auto& samples : shift.cpus) {
    const auto time = [](const auto& each) { return each.time; };
    std::ranges::stable_sort(samples, {}, time);
    const auto same = [&](const auto& a, const auto& b) { return time(a) == time(b); };
    samples.erase(std::unique(samples.begin(), samples.end(), same), samples.end());
  }
  info.shift = std::move(shift);
}

void parse_guest(SectionReader& in, TraceInfo& info) {
  GuestInfo guest;
  guest.name = in.text_until_nul("name of a guest");
  guest.trace_id = in.read<std::uint64_t>("trace id of a guest");
  const auto vcpus = in.read<std::uint32_t>("count of vCPUs");
  for (std::uint32_t i = 0; i < vcpus; ++i) {
    const auto vcpu = in.read<std::uint32_t>("number of a vCPU");
    guest.vcpu_tids.emplace_back(vcpu, in.read<std::int32_t>("thread of a vCPU"));
  }
  info.guests.push_back(std::move(guest));
}

}  // namespace

std::string selected_clock(std::string_view trace_clock) {
  const auto open = trace_clock.find('[');
  const auto close = trace_clock.find(']', open == std::string_view::npos ? 0 : open);
  if (open != std::string_view::npos && close != std::string_view::npos) {
    return std::string(trace_clock.substr(open + 1, close - open - 1));
  }
  const auto end = trace_clock.find_first_of(" \n");
  return std::string(trace_clock.substr(0, end));
}

bool parse_common_option(std::uint16_t id, SectionReader& in, TraceInfo& info) {
  const auto text = [&in] { return without_trailing_nul(in.bytes("option", in.left())); };
  switch (static_cast<Option>(id)) {
    case Option::kDate:  // microseconds between trace clock and time of day
      info.ts_offset_ns = add_offset(info.ts_offset_ns, number(text()), kNsPerUs);
      return true;
    case Option::kOffset:
      info.ts_offset_ns = add_offset(info.ts_offset_ns, number(text()), 1);
      return true;
    case Option::kCpuStat:
      info.cpu_stats.push_back(text());
      return true;
    case Option::kTraceClock:
      info.clock = selected_clock(text());
      return true;
    case Option::kUname:
      info.uname = text();
      return true;
    case Option::kVersion:
      info.recorder_version = text();
      return true;
    case Option::kCpuCount:
      info.cpus_count = in.read<std::uint32_t>("count of CPUs");
      return true;
    case Option::kTraceId:
      info.trace_id = in.read<std::uint64_t>("trace id");
      return true;
    case Option::kTimeShift:
      if (in.left() >= 16) parse_time_shift(in, info);
      return true;
    case Option::kGuest:
      parse_guest(in, info);
      return true;
    case Option::kTsc2Nsec:
      info.has_tsc = true;
      info.tsc_multiplier = in.read<std::uint32_t>("TSC multiplier");
      info.tsc_shift = in.read<std::uint32_t>("TSC shift");
      info.tsc_offset = in.read<std::uint64_t>("TSC offset");
      if (info.tsc_shift >= 64) in.fail("bad-option", "TSC shift is 64 or more");
      return true;
    default:
      return false;
  }
}

}  // namespace wbscope
