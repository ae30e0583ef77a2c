// SPDX-License-Identifier: Apache-2.0
// The lines of a trace text.
#include "text/text_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/utf8.h"
#include "text/characters.h"
#include "text/line_source.h"

namespace wbscope {
namespace {

constexpr std::size_t kSampleBytes = 4u << 20;
constexpr std::size_t kSampleLines = 1u << 17;  // empty ones have no bytes
constexpr std::size_t kMaxLostCpus = 1u << 16;
constexpr auto kNpos = std::string_view::npos;
constexpr std::size_t kLatencyComm = 8;  // characters of a comm in latency format

// The number behind key, wherever it stands in text.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == kNpos) return std::nullopt;
  const std::string_view rest = without_lead(text.substr(at + key.size()));
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return problem == std::errc() ? std::optional(number) : std::nullopt;
}

// Bytes that no program prints into a line.
bool has_control(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && !(byte >= '\a' && byte <= '\r') && byte != 0x1b) || byte == 0x7f;
  });
}

// A line that stands for others: dots, or "snip", in brackets or not, behind marks of quotation.
bool is_elision(std::string_view text) {
  constexpr std::string_view kMarks = " \t\r>|[](){}<-=~*#_:";
  std::string words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("\u2026")) {
      words += "..";
      at += 2;
    } else if (kMarks.find(text[at]) == kNpos) {
      words += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
    }
  }
  if (words.starts_with("snip")) return words == "snip" || words == "snipped";
  return words.size() >= 2 && words.find_first_not_of('.') == kNpos;
}

// trace_marker, trace_printk and trace_marker_raw.
bool is_marker(const LineHead& head) noexcept {
  if (!head.system.empty() && head.system != "ftrace") return false;
  for (const char* name : {"print", "bprint", "bputs", "raw_data", "tracing_mark_write"}) {
    if (head.event == name) return true;
  }
  return false;
}

}  // namespace

TextReader::TextReader(const References& references, TextSink& sink, std::string_view release,
                       TextStamps* stamps)
    : payloads_(references, sink, release),
      sink_(sink),
      references_(references),
      stamps_(stamps) {
  for (const auto& name : references.names_of("printk")) log_names_.push_back(name + ": ");
}

void TextReader::line(std::string_view text, bool is_unended) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (!is_sampling_) {
    if (is_unended) {
      read_unended(text);
    } else {
      read_line(text);
    }
    return;
  }
  is_sample_unended_ = is_unended;
  sample_.append(text);
  sample_ends_.push_back(sample_.size());
  if (sample_.size() >= kSampleBytes || sample_ends_.size() >= kSampleLines) end_sample();
}

void TextReader::end_sample() {
  is_sampling_ = false;
  const auto each = [this](auto&& take) {
    std::size_t begin = 0;
    for (const std::size_t end : sample_ends_) {
      take(std::string_view(sample_).substr(begin, end - begin));
      begin = end;
    }
  };
  std::uint64_t perf = 0;
  std::uint64_t padded = 0;
  std::uint64_t flags = 0;
  std::uint64_t heads = 0;
  std::uint64_t log_lines = 0;
  bool has_cpus = false;
  bool has_tracer = false;
  bool has_known = false;  // an event that has a reference
  each([&](std::string_view text) {
    has_cpus = has_cpus || text.starts_with("cpus=");
    has_tracer = has_tracer || text.starts_with("# tracer:");
    if (text.starts_with('#')) return;
    const auto head = parse_line_head(text);
    if (!head) {
      if (log_event(text) || parse_log_line(text).ts) ++log_lines;
      return;
    }
    ++heads;
    perf += head->style == HeadStyle::kPerf ? 1 : 0;
    padded += head->is_padded ? 1 : 0;
    flags += head->has_flags ? 1 : 0;
    has_known = has_known || !references_.find(head->system, head->event).empty();
    if (!head->event.empty()) payloads_.sample(head->system, head->event, head->payload);
  });
  if (heads == 0 && log_lines > 0) {
    facts_.style = TextStyle::kLog;
  } else if (2 * perf > heads) {
    facts_.style = TextStyle::kPerf;
  } else if (has_cpus || (!has_tracer && flags == 0 && 2 * padded > heads)) {
    facts_.style = TextStyle::kTraceCmd;
  }
  payloads_.decide();
  std::size_t left = sample_ends_.size();
  each([this, &left](std::string_view text) {
    if (--left == 0 && is_sample_unended_) {
      read_unended(text);
    } else {
      read_line(text);
    }
  });
  // One line of an event that kernels have is enough. Else most lines have to
  // be records.
  is_trace_ = facts_.style == TextStyle::kLog || has_cpus || has_tracer || has_known ||
              (facts_.records > 0 && facts_.not_understood <= facts_.records);
  facts_.has_heading = has_cpus || has_tracer;
  sample_ = std::string();
  sample_ends_ = std::vector<std::size_t>();
}

void TextReader::finish() {
  if (is_sampling_) end_sample();
  end_marker();
  for (const auto& [cpu, count] : lost_) sink_.lost(facts_.last_ts, cpu, count);
  lost_.clear();
  facts_.generic = payloads_.generic_records();
}

// Comments of the kernel, headings of trace-cmd, notes of lost events.
bool TextReader::read_heading(std::string_view text) {
  if (text.starts_with('#')) {
    constexpr std::string_view kTracer = "# tracer:";
    if (text.starts_with(kTracer)) facts_.tracer = without_lead(text.substr(kTracer.size()));
    if (const auto cpus = number_behind(text, "#P:")) {
      facts_.cpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(*cpus, UINT32_MAX));
    }
    constexpr std::string_view kEntries = "entries-in-buffer/entries-written:";
    const auto kept = number_behind(text, kEntries);
    if (kept) {
      const auto written = number_behind(text.substr(text.find(kEntries) + kEntries.size()), "/");
      if (written && *written > *kept) facts_.overwritten += *written - *kept;
    }
    return true;
  }
  if (text.starts_with("cpus=")) {
    const auto cpus = number_behind(text, "cpus=");
    if (cpus) facts_.cpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(*cpus, UINT32_MAX));
    return true;
  }
  if (facts_.records == 0 && (text.starts_with("version = ") || text.starts_with("CPU "))) {
    if (text.starts_with("version") || text.find("is empty") != kNpos) return true;
  }
  const auto lost = parse_lost_note(text);
  if (!lost) return false;
  if (lost_.size() >= kMaxLostCpus && !lost_.contains(lost->cpu)) return true;
  auto& pending = lost_[lost->cpu];
  if (lost->count) pending = pending.value_or(0) + *lost->count;
  return true;
}

// Lines that belong to the record before them: a call chain of perf, a stack
// dump of the kernel.
bool TextReader::is_continuation(std::string_view text) const {
  if (facts_.records == 0) return false;
  const std::string_view body = without_lead(text);
  if (body.starts_with("=>")) return true;
  if (facts_.style != TextStyle::kPerf || body.size() == text.size()) return false;
  std::size_t digits = 0;
  while (digits < body.size() && std::isxdigit(static_cast<unsigned char>(body[digits])) != 0) {
    ++digits;
  }
  return digits >= 1 && digits <= 16 && (digits == body.size() || body[digits] == ' ');
}

std::optional<std::pair<std::string_view, LogLine>> TextReader::log_event(
    std::string_view text) const {
  LogLine log = parse_log_line(text);
  for (const std::string& name : log_names_) {
    if (!log.text.starts_with(name)) continue;
    log.text.remove_prefix(name.size());
    return std::pair(std::string_view(name).substr(0, name.size() - 2), log);
  }
  return std::nullopt;
}

std::int64_t TextReader::put_right(std::uint32_t cpu, std::int64_t ts) {
  return stamps_ == nullptr ? ts : stamps_->put_right(cpu, ts, facts_.lines);
}

bool TextReader::read_log(std::string_view text) {
  const auto event = log_event(text);
  if (!event) return false;
  const std::int64_t ts =
      event->second.ts ? put_right(EventLead::kNoCpu, *event->second.ts) : 0;
  if (sink_.selects(ts) && !payloads_.read_log(event->first, event->second.text, ts)) return false;
  facts_.has_time = facts_.has_time || event->second.ts.has_value();
  (void)note_time(ts);
  return true;
}

bool TextReader::note_time(std::int64_t ts) {
  const bool is_selected = sink_.selects(ts);
  if (facts_.records == 0) facts_.last_ts = ts;
  if (is_selected && ts < facts_.last_ts) ++facts_.time_backwards;
  facts_.last_ts = ts;
  ++facts_.records;
  return is_selected;
}

// Takes the line as a part of the record before it.
bool TextReader::extend_marker(std::string_view text) {
  if (!has_marker_ || has_control(text)) return false;
  if (marker_rest_.size() + text.size() >= LineSource::kMaxLine) return false;
  marker_rest_.append("\n").append(text);
  return true;
}

void TextReader::end_marker() {
  if (!has_marker_) return;
  has_marker_ = false;
  while (marker_rest_.ends_with('\n')) marker_rest_.pop_back();
  auto head = parse_line_head(marker_);
  if (!head || !is_marker_wanted_) return;
  const std::string payload = std::string(head->payload) + marker_rest_;
  head->payload = payload;
  head->ts = marker_ts_;
  payloads_.read(*head);
}

void TextReader::misread(std::string_view text) {
  facts_.is_last_misread = true;
  if (has_control(text) || !is_utf8(text)) {
    if (facts_.noise++ == 0) facts_.first_noise = facts_.lines;
  }
  if (facts_.not_understood++ != 0) return;
  constexpr std::size_t kShown = 120;
  facts_.first_not_understood = facts_.lines;
  facts_.not_understood_text = replace_invalid_utf8(text.substr(0, kShown));
  // It goes to a terminal.
  std::replace_if(
      facts_.not_understood_text.begin(), facts_.not_understood_text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
}

bool TextReader::take_record(const LineHead& head) {
  facts_.is_ticks = facts_.is_ticks || head.is_ticks;
  facts_.has_time = true;
  const bool is_selected = note_time(head.ts);
  for (const std::uint32_t cpu : {head.cpu, EventLead::kNoCpu}) {
    if (const auto lost = lost_.find(cpu); lost != lost_.end()) {
      sink_.lost(head.ts, cpu, lost->second);
      lost_.erase(lost);
    }
  }
  // perf prints ":123" and the kernel "<...>" where they do not know the name.
  const bool is_cut = head.style == HeadStyle::kLatency && head.comm.size() >= kLatencyComm;
  if (!head.comm.empty() && head.comm != "<...>" && head.comm.front() != ':' && !is_cut) {
    sink_.name_task(head.tid, head.comm);
  }
  return is_selected;
}

void TextReader::read_line(std::string_view text) {
  ++facts_.lines;
  facts_.is_last_misread = false;
  if (without_lead(text).empty()) {
    (void)extend_marker({});
    return;
  }
  const bool is_note = text.starts_with('#') && !text.starts_with("# tracer:") &&
                       !text.starts_with("#####");  // "##### CPU 1 buffer started ####"
  if (is_note && extend_marker(text)) return;
  if (read_heading(text)) {
    end_marker();
    return;
  }
  auto head = parse_line_head(text);
  if (!head) {
    if (facts_.style != TextStyle::kLog && is_continuation(text)) {
      ++facts_.continuations;
    } else if ((facts_.style != TextStyle::kLog && extend_marker(text)) || read_log(text)) {
      return;
    } else if (is_elision(text)) {
      ++facts_.elided;
    } else if (facts_.style == TextStyle::kLog) {
      ++facts_.other;
    } else {
      misread(text);
    }
    return;
  }
  end_marker();
  if (!head->is_ticks) head->ts = put_right(head->cpu, head->ts);
  if (head->event.empty()) {
    if (!sink_.selects(head->ts) || payloads_.read_nameless(*head)) {
      (void)take_record(*head);
    } else {
      misread(text);
    }
    return;
  }
  const bool is_selected = take_record(*head);
  if (is_marker(*head)) {
    marker_ = text;
    marker_rest_.clear();
    marker_ts_ = head->ts;
    has_marker_ = true;
    is_marker_wanted_ = is_selected;
  } else if (is_selected) {
    payloads_.read(*head);
  }
}

bool TextReader::is_whole(std::string_view text) {
  const auto head = parse_line_head(text);
  if (head) {
    // Without an event's name, reading it tells; texts of user space may be anything.
    return head->event.empty() || is_marker(*head) || payloads_.is_whole(*head);
  }
  const auto log = facts_.style == TextStyle::kLog ? log_event(text) : std::nullopt;
  return !log || payloads_.is_whole_log(log->first, log->second.text);
}

// The last word of a record that was cut may be a part of a number: it goes.
void TextReader::read_unended(std::string_view text) {
  const bool is_cut = !is_whole(text);
  if (is_cut) {
    const auto head = parse_line_head(text);
    const auto lead = head ? text.size() - head->payload.size() : text.size();
    const auto blank = without_tail(text).find_last_of(" \t");
    text = text.substr(0, std::max(lead, blank == kNpos ? 0 : blank));
  }
  read_line(text);
  facts_.is_last_cut = is_cut;
}

}  // namespace wbscope
