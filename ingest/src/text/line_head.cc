// SPDX-License-Identifier: Apache-2.0
// The front of a line of trace text.
#include "text/line_head.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "text/characters.h"

namespace wbscope {
namespace {

constexpr auto kNpos = std::string_view::npos;
constexpr std::size_t kMaxHead = 256;  // the CPU stands within that

// The next word; text keeps what follows.
std::string_view take_word(std::string_view& text) noexcept {
  text = without_lead(text);
  const auto end = find_blank(text);
  const auto word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

template <typename Number>
bool whole_number(std::string_view text, Number& out) noexcept {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && !text.empty() && end == text.data() + text.size();
}

// "comm-tid", "comm-tid (tgid)", "comm tid", "comm pid/tid".
bool take_task(std::string_view text, LineHead& out) {
  text = without_tail(text);
  if (text.ends_with(')')) {
    const auto open = text.rfind('(');
    if (open == kNpos ||
        text.substr(open + 1, text.size() - open - 2).find_first_not_of("0123456789- ") != kNpos) {
      return false;
    }
    text = without_tail(text.substr(0, open));
  }
  std::size_t at = text.size();
  while (at > 0 && is_digit(text[at - 1])) --at;
  if (at == 0 || at == text.size() || !whole_number(text.substr(at), out.tid)) return false;
  const char before = text[at - 1];
  std::string_view comm = text.substr(0, at - 1);
  if (before == '-') {
    out.style = HeadStyle::kFtrace;
  } else if (before == '/') {
    out.style = HeadStyle::kPerf;
    while (!comm.empty() && is_digit(comm.back())) comm.remove_suffix(1);
    if (!comm.empty() && comm.back() == '-') comm.remove_suffix(1);  // perf: -1 for idle
  } else if (is_blank(before)) {
    out.style = HeadStyle::kPerf;
  } else {
    return false;
  }
  out.comm = without_lead(without_tail(comm));
  return true;
}

// "12.345678: ", "123us+: ", "123456: ".
bool take_time(std::string_view& text, LineHead& out) {
  std::string_view rest = without_lead(text);
  const auto colon = rest.find(':');
  if (colon == kNpos || colon == 0 || colon > 32) return false;
  std::string_view word = rest.substr(0, colon);
  // A latency trace marks long delays: 12us+ 120us! 1200us#
  bool in_us = false;
  while (!word.empty() && std::string_view("+!#*@$ ").find(word.back()) != kNpos) {
    word.remove_suffix(1);
  }
  if (word.ends_with("us")) {
    word.remove_suffix(2);
    in_us = true;
  }
  const auto time = parse_time(word);
  if (!time) return false;
  out.ts = time->ts;
  out.is_ticks = time->is_ticks;
  if (in_us && out.is_ticks) {
    if (out.ts > std::numeric_limits<std::int64_t>::max() / 1000) return false;
    out.ts *= 1000;
    out.is_ticks = false;
  }
  rest.remove_prefix(colon + 1);
  if (!rest.empty() && !is_blank(rest.front())) return false;
  text = rest;
  return true;
}

// Behind the time stamp: "event: payload", "system:event: payload", and what
// tracers without events print.
bool take_event(std::string_view text, LineHead& out) {
  text = without_lead(text);
  if (text.starts_with("(+")) {  // trace-cmd report --ts-diff
    const auto close = text.find(')');
    if (close != kNpos) text = without_lead(text.substr(close + 1));
  }
  if (out.style == HeadStyle::kPerf && !text.empty() && is_digit(text.front())) {
    (void)take_word(text);  // the sample period
    text = without_lead(text);
  }
  std::size_t end = 0;
  while (end < text.size() && is_name(text[end])) ++end;
  out.payload = text;
  if (end == 0 || end > kMaxTextName || end >= text.size() || text[end] != ':') {
    return !text.empty();
  }
  out.event = text.substr(0, end);
  std::size_t next = end + 1;
  if (next < text.size() && is_name(text[next])) {
    std::size_t last = next;
    while (last < text.size() && is_name(text[last])) ++last;
    if (last < text.size() && text[last] == ':' && last - next <= kMaxTextName) {
      out.system = out.event;
      out.event = text.substr(next, last - next);
      next = last + 1;
    }
  }
  std::string_view payload = text.substr(next);
  const auto first = skip_blanks(payload);
  out.is_padded = first > 1 && out.event.size() < 20;
  out.payload = payload.substr(first);
  return true;
}

// "d.h2.": the third tells an interrupt, of a hard one within a soft one both.
std::uint8_t context_of(std::string_view flags) {
  constexpr std::uint8_t kHard = 8;
  constexpr std::uint8_t kSoft = 16;
  if (flags.size() < 3) return 0;
  switch (flags[2]) {
    case 'h':
    case 'Z':
      return kHard;
    case 's':
      return kSoft;
    case 'H':
      return kHard | kSoft;
    default:
      return 0;
  }
}

// Behind "[cpu]": flags that may be missing, then the time.
bool take_rest(std::string_view text, LineHead& out) {
  std::string_view after = text;
  if (take_time(after, out)) return take_event(after, out);
  after = text;
  const std::string_view flags = take_word(after);
  if (flags.size() < 4 || flags.size() > 8 || !take_time(after, out)) return false;
  out.has_flags = true;
  out.context = context_of(flags);
  return take_event(after, out);
}

std::optional<LineHead> parse_with_brackets(std::string_view line) {
  const std::size_t limit = std::min(line.size(), kMaxHead);
  for (std::size_t open = line.find('['); open < limit; open = line.find('[', open + 1)) {
    const auto close = line.find(']', open);
    if (close == kNpos) return std::nullopt;
    LineHead out;
    if (close - open > 8 || !whole_number(line.substr(open + 1, close - open - 1), out.cpu)) {
      continue;
    }
    if (take_task(line.substr(0, open), out) && take_rest(line.substr(close + 1), out)) return out;
  }
  return std::nullopt;
}

// "comm-tid  3d..1. 12us+: ...": CPU and flags are one word.
std::optional<LineHead> parse_latency(std::string_view line) {
  const std::size_t limit = std::min(line.size(), kMaxHead);
  for (std::size_t dash = line.find('-'); dash < limit; dash = line.find('-', dash + 1)) {
    LineHead out;
    out.style = HeadStyle::kLatency;
    std::string_view rest = line.substr(dash + 1);
    std::size_t end = 0;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    if (end == 0 || !whole_number(rest.substr(0, end), out.tid)) continue;
    rest.remove_prefix(end);
    const std::string_view word = take_word(rest);
    std::size_t digits = 0;
    while (digits < word.size() && is_digit(word[digits])) ++digits;
    const std::size_t flags = word.size() - digits;
    if (digits == 0 || digits > 5 || flags < 3 || flags > 8 ||
        !whole_number(word.substr(0, digits), out.cpu) || !take_time(rest, out) ||
        !take_event(rest, out)) {
      continue;
    }
    out.comm = without_lead(line.substr(0, dash));
    out.has_flags = true;
    out.context = context_of(word.substr(digits));
    return out;
  }
  return std::nullopt;
}

// perf script -F without the CPU: "comm tid ts: system:event: payload".
std::optional<LineHead> parse_without_cpu(std::string_view line) {
  const std::size_t limit = std::min(line.size(), kMaxHead);
  for (std::size_t colon = line.find(": "); colon < limit; colon = line.find(": ", colon + 1)) {
    const auto start = line.find_last_of(" \t", colon);
    if (start == kNpos) continue;
    LineHead out;
    std::string_view rest = line.substr(start + 1);
    if (!take_time(rest, out) || out.is_ticks) continue;
    if (!take_task(line.substr(0, start), out) || !take_event(rest, out)) return std::nullopt;
    if (out.style != HeadStyle::kPerf || out.system.empty()) return std::nullopt;
    return out;
  }
  return std::nullopt;
}

std::optional<LostNote> parse_bpftrace_lost(std::string_view line) {
  constexpr std::string_view kLost = "Lost ";
  constexpr std::string_view kEvents = " events";
  if (!line.starts_with(kLost) || !line.ends_with(kEvents)) return std::nullopt;
  line.remove_prefix(kLost.size());
  line.remove_suffix(std::min(kEvents.size(), line.size()));
  std::uint64_t count = 0;
  if (!whole_number(line, count)) return std::nullopt;
  return LostNote{.count = count};
}

}  // namespace

std::optional<TimeText> parse_time(std::string_view text) {
  TimeText out;
  const auto dot = text.find('.');
  if (dot == kNpos) {
    out.is_ticks = true;
    if (!whole_number(text, out.ts) || out.ts < 0) return std::nullopt;
    return out;
  }
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = 0;
  if (!whole_number(text.substr(0, dot), seconds) || seconds < 0 ||
      seconds > std::numeric_limits<std::int64_t>::max() / kSecond - 1) {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(dot + 1);
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  std::int64_t fraction = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const char c = i < digits.size() ? digits[i] : '0';
    if (!is_digit(c)) return std::nullopt;
    fraction = fraction * 10 + (c - '0');
  }
  out.ts = seconds * kSecond + fraction;
  return out;
}

std::optional<LineHead> parse_line_head(std::string_view line) {
  if (auto head = parse_with_brackets(line)) return head;
  if (auto head = parse_latency(line)) return head;
  return parse_without_cpu(line);
}

std::optional<LostNote> parse_lost_note(std::string_view line) {
  line = without_lead(line);
  if (const auto lost = parse_bpftrace_lost(line)) return lost;
  if (!line.starts_with("CPU")) return std::nullopt;
  line.remove_prefix(3);
  const auto open = line.find('[');
  if (open == kNpos || line.find("EVENTS") == kNpos) return std::nullopt;
  std::string_view cpu = line.substr(0, open);
  while (!cpu.empty() && !is_digit(cpu.front())) cpu.remove_prefix(1);
  while (!cpu.empty() && !is_digit(cpu.back())) cpu.remove_suffix(1);
  LostNote out;
  if (!whole_number(cpu, out.cpu)) return std::nullopt;
  std::string_view words = line.substr(open + 1);
  for (int i = 0; i < 3; ++i) {
    std::uint64_t count = 0;
    if (whole_number(take_word(words), count)) out.count = count;
  }
  return out;
}

LogLine parse_log_line(std::string_view line) {
  constexpr std::string_view kKernel = "kernel: ";
  if (const auto at = line.find(kKernel); at < kMaxHead) line.remove_prefix(at + kKernel.size());
  line = without_lead(line);
  if (line.size() > 2 && line.front() == '<' && is_digit(line[1])) {  // console level
    const auto close = line.find('>');
    if (close != kNpos) line.remove_prefix(close + 1);
  }
  LogLine out{.ts = std::nullopt, .text = line};
  if (!line.starts_with('[')) return out;
  const auto close = line.find(']');
  if (close == kNpos) return out;
  const auto time = parse_time(without_lead(line.substr(1, close - 1)));
  if (!time || time->is_ticks) return out;
  out.ts = time->ts;
  out.text = without_lead(line.substr(close + 1));
  if (out.text.starts_with("[ ") || out.text.starts_with("[T") || out.text.starts_with("[C")) {
    const auto caller = out.text.find(']');  // CONFIG_PRINTK_CALLER
    if (caller != kNpos) out.text = without_lead(out.text.substr(caller + 1));
  }
  return out;
}

}  // namespace wbscope
