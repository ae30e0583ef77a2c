// SPDX-License-Identifier: Apache-2.0
// Sidecars of several samples or several objects, as wbscope record writes them.
#include "sidecar/samples.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "sidecar/lines.h"

namespace wbscope {
namespace {

constexpr std::string_view kSampleMark = "# ts=";
constexpr std::string_view kObjectMark = "== ";
constexpr std::array<std::string_view, 17> kBlockNames{
    "read_ios",       "read_merges",     "read_sectors",  "read_ticks",   "write_ios",
    "write_merges",   "write_sectors",   "write_ticks",   "in_flight",    "io_ticks",
    "time_in_queue",  "discard_ios",     "discard_merges", "discard_sectors", "discard_ticks",
    "flush_ios",      "flush_ticks"};

// Takes the first line off; it has no newline then.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_word(std::string_view& line) {
  const auto start = line.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return line = {};
  line.remove_prefix(start);
  const auto word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return word;
}

// Parts begin with lines that start with mark; what is before the first is a problem.
template <typename Read>
TextProblems each_part(std::string_view text, std::string_view mark, const OnPart& on_part,
                       Read&& read_mark) {
  TextProblems problems;
  std::uint64_t number = 0;
  while (!text.empty()) {
    TextPart part;
    const auto head = take_line(text);
    ++number;
    if (!head.starts_with(mark) || !read_mark(head.substr(mark.size()), part)) {
      if (!head.empty()) problems.add(number);
      continue;
    }
    part.line = number + 1;
    const auto* const begin = text.data();
    while (!text.empty() && !text.starts_with(mark)) {
      take_line(text);
      ++number;
    }
    part.text = std::string_view(begin, static_cast<std::size_t>(text.data() - begin));
    const TextProblems inner = on_part(part);
    if (inner.lines == 0) continue;
    if (problems.lines == 0) problems.first_line = part.line - 1 + inner.first_line;
    problems.lines += inner.lines;
  }
  return problems;
}

constexpr std::string_view kDevice = "dev ";

bool read_device(std::string_view number, const OnNamedValue& on_value) {
  const auto colon = number.find(':');
  if (colon == std::string_view::npos) return false;
  const auto major = integer(number.substr(0, colon));
  const auto minor = integer(number.substr(colon + 1));
  if (!major || !minor) return false;
  on_value({.name = "dev_major", .value = *major, .unit = {}});
  on_value({.name = "dev_minor", .value = *minor, .unit = {}});
  return true;
}

// Lines "254:0 rbytes=1 wbytes=2 ..."; values that are no whole numbers are those
// of a controller's own ("cost.vrate=100.00").
TextProblems parse_io_stat(std::string_view text, const OnNamedValue& on_value) {
  TextProblems problems;
  std::string name;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    auto line = take_line(text);
    const auto device = take_word(line);
    if (device.size() > kMostNameBytes) {
      problems.add(number);
      continue;
    }
    for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) {
        problems.add(number);
        break;
      }
      const auto value = integer(word.substr(equals + 1));
      if (!value) continue;
      name.assign(device).append(" ").append(word.substr(0, equals));
      on_value({.name = name, .value = *value, .unit = {}});
    }
  }
  return problems;
}

}  // namespace

TextProblems each_sample(std::string_view text, const OnPart& on_part) {
  return each_part(text, kSampleMark, on_part, [](std::string_view rest, TextPart& part) {
    const auto ts = integer(rest);
    part.ts = ts.value_or(0);
    return ts.has_value();
  });
}

bool starts_with_time(std::string_view text) {
  const auto head = take_line(text);
  return head.starts_with(kSampleMark) && integer(head.substr(kSampleMark.size()));
}

TextProblems each_object(std::string_view text, const OnPart& on_part) {
  return each_part(text, kObjectMark, on_part, [](std::string_view rest, TextPart& part) {
    part.object = rest;
    return !rest.empty() && rest.size() <= kMostNameBytes;
  });
}

TextProblems parse_block_stat(std::string_view text, const OnNamedValue& on_value) {
  TextProblems problems;
  std::uint64_t number = 0;
  while (!text.empty()) {
    auto line = take_line(text);
    ++number;
    if (line.starts_with(kDevice)) {
      if (!read_device(line.substr(kDevice.size()), on_value)) problems.add(number);
      continue;
    }
    std::size_t place = 0;
    while (place < kBlockNames.size()) {
      const auto word = take_word(line);
      if (word.empty()) break;
      const auto value = integer(word);
      if (!value) {
        problems.add(number);
        break;
      }
      on_value({.name = kBlockNames[place++], .value = *value, .unit = {}});
    }
  }
  return problems;
}

TextProblems parse_bdi_stats(std::string_view text, const OnNamedValue& on_value) {
  constexpr std::string_view kState = "state:";
  const auto at = text.rfind(kState);
  if (at == std::string_view::npos) return parse_meminfo(text, on_value);
  TextProblems problems = parse_meminfo(text.substr(0, at), on_value);
  auto line = text.substr(at + kState.size());
  auto rest = line;
  line = take_line(rest);
  const auto word = take_word(line);
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  if (problem != std::errc() || word.empty() || end != word.data() + word.size()) {
    problems.add(1);
  } else {
    on_value({.name = text.substr(at, kState.size() - 1), .value = value, .unit = {}});
  }
  return problems;
}

TextProblems parse_pressure(std::string_view text, const OnNamedValue& on_value) {
  TextProblems problems;
  std::uint64_t number = 0;
  while (!text.empty()) {
    auto line = take_line(text);
    ++number;
    const auto kind = take_word(line);
    if (kind.empty()) continue;
    constexpr std::string_view kTotal = "total=";
    std::optional<std::int64_t> total;
    for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
      if (word.starts_with(kTotal)) total = integer(word.substr(kTotal.size()));
    }
    if (!total || (kind != "some" && kind != "full")) {
      problems.add(number);
      continue;
    }
    on_value({.name = kind == "some" ? "some_total" : "full_total", .value = *total,
              .unit = "us"});
  }
  return problems;
}

TextProblems parse_cgroup_file(std::string_view file, std::string_view text,
                               const OnNamedValue& on_value) {
  if (file == "memory.stat" || file == "memory.events") return parse_vmstat(text, on_value);
  if (file == "io.stat") return parse_io_stat(text, on_value);
  if (file.ends_with(".pressure")) return parse_pressure(text, on_value);
  TextProblems problems;
  if (const auto value = integer(take_line(text))) {
    on_value({.name = file, .value = *value, .unit = {}});
  } else {
    problems.add(1);
  }
  return problems;
}

}  // namespace wbscope
