// SPDX-License-Identifier: Apache-2.0
// Payloads into values.
#include "text/payload_reader.h"

#include <algorithm>
#include <set>

#include "base/names.h"
#include "text/characters.h"

namespace wbscope {
namespace {

constexpr std::uint32_t kSamples = 32;  // of one event; enough to see all its keys
constexpr std::size_t kMaxEvents = 1u << 16;
constexpr std::string_view kNotParsed = "[FAILED TO PARSE]";  // trace-cmd, then its raw fields

}  // namespace

PayloadReader::PayloadReader(const References& references, TextSink& sink,
                             std::string_view release)
    : references_(references), sink_(sink) {
  // "6.12.117-arch" and the reference of 6.12.3 print the same.
  const auto dot = release.find('.');
  const auto second = dot == std::string_view::npos ? dot : release.find_first_of(".-", dot + 1);
  if (second != std::string_view::npos) release_ = std::string(release.substr(0, second)) + ".";
}

PayloadReader::Event& PayloadReader::event(std::string_view system, std::string_view name) {
  key_.assign(system).append(":").append(name);
  if (const auto found = events_.find(key_); found != events_.end()) return *found->second;
  // A text that invents events gets one state for all of them.
  if (events_.size() >= kMaxEvents) key_ = "";
  auto& place = events_[key_];
  if (place) return *place;
  place = std::make_unique<Event>();
  Event& made = *place;
  made.name = name;
  for (const Reference* reference : references_.find(system, name)) {
    made.candidates.push_back({.reference = reference, .matches = 0, .fields = {}});
  }
  made.system = system;
  if (system.empty() && !made.candidates.empty()) {
    made.system = made.candidates.front().reference->system();
  }
  made.is_wanted = sink_.wanted(made.system, made.name);
  made.index = sink_.event(made.system, made.name);
  if (made.is_wanted && sink_.keeps_flags(made.system, made.name)) {
    made.flags_field = sink_.field(made.index, {.name = "common_flags", .type = "unsigned char"});
  }
  return made;
}

void PayloadReader::sample(std::string_view system, std::string_view name,
                           std::string_view payload) {
  Event& sampled = event(system, name);
  if (!sampled.is_wanted || sampled.samples >= kSamples) return;
  ++sampled.samples;
  for (Candidate& candidate : sampled.candidates) {
    const PrintTemplate* print = candidate.reference->print();
    if (print != nullptr && matcher_.match(*print, payload)) ++candidate.matches;
  }
}

void PayloadReader::decide() {
  for (const auto& [key, sampled] : events_) {
    // Where no reference fits, raw fields were printed: that tells nothing.
    const bool any = std::any_of(sampled->candidates.begin(), sampled->candidates.end(),
                                 [](const Candidate& c) { return c.matches > 0; });
    if (!any) continue;
    for (const Candidate& candidate : sampled->candidates) {
      const double part = static_cast<double>(candidate.matches) / sampled->samples;
      kernel_score_[candidate.reference->kernel()] += part == 0 ? -1 : part;
    }
  }
}

// Best first: what matched most, what was written for this printer, the kernel
// that fits most events, the one that tells most fields, the newest.
void PayloadReader::order(Event& ordered) const {
  const auto score = [this](const Candidate& candidate) {
    const std::string& kernel = candidate.reference->kernel();
    constexpr double kSameRelease = 1e6;
    const double named = !release_.empty() && kernel.starts_with(release_) ? kSameRelease : 0;
    const auto found = kernel_score_.find(kernel);
    return named + (found == kernel_score_.end() ? 0.0 : found->second);
  };
  const auto told = [](const Candidate& candidate) -> std::size_t {
    const PrintTemplate* print = candidate.reference->print();
    return print == nullptr ? 0 : print->invertible;
  };
  std::stable_sort(ordered.candidates.begin(), ordered.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     if (a.matches != b.matches) return a.matches > b.matches;
                     if (a.reference->by_hand() != b.reference->by_hand()) {
                       return a.reference->by_hand();
                     }
                     if (score(a) != score(b)) return score(a) > score(b);
                     return told(a) > told(b);
                   });
  ordered.is_decided = true;
}

void PayloadReader::use(Event& used, Candidate& candidate) {
  const PrintTemplate& print = *candidate.reference->print();
  for (const FieldPlan& field : print.fields) {
    candidate.fields.push_back(
        sink_.field(used.index, {.name = field.name, .type = field.type}));
  }
  if (used.described == nullptr) {
    used.described = candidate.reference;
    sink_.describe(used.index, candidate.reference->text(), print.labels);
  }
}

bool PayloadReader::match(Event& matched, std::string_view payload) {
  if (!matched.is_decided) order(matched);
  const auto try_one = [&](std::size_t i) {
    Candidate& candidate = matched.candidates[i];
    const PrintTemplate* print = candidate.reference->print();
    if (print == nullptr || !matcher_.match(*print, payload)) return false;
    if (candidate.fields.size() != print->fields.size()) use(matched, candidate);
    const auto& values = matcher_.values();
    for (std::size_t f = 0; f < values.size(); ++f) {
      cells_.emplace_back(candidate.fields[f], values[f]);
    }
    matched.current = i;
    return true;
  };
  if (matched.current < matched.candidates.size() && try_one(matched.current)) return true;
  for (std::size_t i = 0; i < matched.candidates.size(); ++i) {
    if (i != matched.current && try_one(i)) return true;
  }
  return false;
}

const FieldPlan* PayloadReader::known_field(const Event& event, std::string_view name) {
  for (const Candidate& candidate : event.candidates) {
    const PrintTemplate* print = candidate.reference->print();
    if (print == nullptr) continue;
    for (const FieldPlan& field : print->fields) {
      if (field.name == name) return &field;
    }
  }
  return nullptr;
}

// Raw output of trace-cmd prints a field as its print format does, without the
// "0x" that may stand in front of it there.
std::uint32_t PayloadReader::printed_base(const Event& event, std::string_view name) {
  for (const Candidate& candidate : event.candidates) {
    const PrintTemplate* print = candidate.reference->print();
    if (print == nullptr) continue;
    for (const PrintPiece& piece : print->pieces) {
      if (!piece.arg || piece.arg->kind != PrintArg::Kind::kNumber || piece.arg->field < 0 ||
          piece.arg->shift != 0) {
        continue;
      }
      if (print->fields[static_cast<std::size_t>(piece.arg->field)].name == name) {
        return piece.arg->base;
      }
    }
  }
  return 10;
}

void PayloadReader::add_named(Event& named, std::string_view name, const Value& value) {
  auto found = named.named_fields.find(std::string(name));
  const FieldPlan* known = nullptr;
  if (found == named.named_fields.end()) {
    known = known_field(named, name);
    found = named.named_fields
                .emplace(name, sink_.field(named.index,
                                           {.name = std::string(name),
                                            .type = known == nullptr ? "" : known->type}))
                .first;
  }
  cells_.emplace_back(found->second, value);
}

void PayloadReader::read_generic(Event& generic, std::string_view payload, bool as_printed) {
  ++generic_;
  for (const KeyValue& pair : split_key_values(payload)) {
    const FieldPlan* known = known_field(generic, pair.key);
    const std::uint32_t base =
        known != nullptr && as_printed ? printed_base(generic, pair.key) : 10;
    Value value = typed_value(pair.value, base);
    if (known != nullptr && known->kind == FieldKind::kInteger) {
      // Words where the record has a number: not known, and never text.
      auto* number = std::get_if<std::int64_t>(&value);
      value = number == nullptr
                  ? Value{}
                  : Value{as_field(static_cast<std::uint64_t>(*number), *known)};
    } else if (known != nullptr) {
      value = pair.value;
    }
    add_named(generic, pair.key.empty() ? "payload" : pair.key, value);
    if (!pair.second.empty()) {
      add_named(generic, std::string(pair.key) + "_paren", typed_value(pair.second));
    }
  }
}

void PayloadReader::put(Event& event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid) {
  sink_.write(event.index, ts, cpu, tid, cells_);
}

void PayloadReader::record(
    const LineHead& head, std::string_view system, std::string_view name,
    std::initializer_list<std::pair<std::string_view, Value>> values) {
  Event& made = event(system, name);
  if (!made.is_wanted) {
    sink_.count(made.index, head.ts, head.tid);
    return;
  }
  cells_.clear();
  for (const auto& [field, value] : values) add_named(made, field, value);
  put(made, head.ts, head.cpu, head.tid);
}

// trace_marker and trace_printk: "where: what". Text names the place, where
// the record has its address.
void PayloadReader::read_print(const LineHead& head, std::string_view ip, std::string_view buf) {
  record(head, "ftrace", "print", {{"ip", ip}, {"buf", buf}});
}

void PayloadReader::read(const LineHead& head) {
  if (head.system.empty() && head.event == "tracing_mark_write") {
    read_print(head, head.event, head.payload);
    return;
  }
  if (head.event == "print" && (head.system.empty() || head.system == "ftrace")) {
    const auto colon = std::min(head.payload.find(": "), head.payload.size());
    const auto buf = std::min(colon + 2, head.payload.size());
    read_print(head, head.payload.substr(0, colon), head.payload.substr(buf));
    return;
  }
  // Of a synthetic event text has no system, and its name is of one recording.
  const bool is_named = head.system.empty() && head.event.starts_with("wbscope_");
  const CommonName named = common_name(is_named ? "synthetic" : head.system, head.event);
  Event& read = event(is_named && named.system == "synthetic" ? head.system : named.system, named.name);
  if (!read.is_wanted) {
    sink_.count(read.index, head.ts, head.tid);
    return;
  }
  cells_.clear();
  std::string_view payload = head.payload;
  if (payload.starts_with(kNotParsed)) {
    read_generic(read, without_lead(payload.substr(kNotParsed.size())), false);
  } else if (!match(read, payload)) {
    cells_.clear();
    read_generic(read, payload, true);
  }
  if (read.flags_field && head.has_flags) {
    cells_.emplace_back(*read.flags_field, std::int64_t{head.context});
  }
  put(read, head.ts, head.cpu, head.tid);
}

bool PayloadReader::is_printed_by(const Reference& reference, std::string_view payload) {
  return reference.print() != nullptr && matcher_.match(*reference.print(), payload);
}

bool PayloadReader::has_all_keys(const Event& event, const std::vector<KeyValue>& pairs) {
  std::set<std::string> names;
  for (const KeyValue& pair : pairs) {
    const std::string name(pair.key.empty() ? "payload" : pair.key);
    names.insert(name);
    if (!pair.second.empty()) names.insert(name + "_paren");
  }
  return std::ranges::all_of(event.named_fields,
                             [&](const auto& field) { return names.contains(field.first); });
}

bool PayloadReader::is_whole(const LineHead& head) {
  key_.assign(head.system).append(":").append(head.event);
  const auto seen = events_.find(key_);
  std::string_view payload = head.payload;
  const bool is_raw = payload.starts_with(kNotParsed);
  if (is_raw) payload.remove_prefix(kNotParsed.size());
  const auto known = references_.find(head.system, head.event);
  const std::vector<KeyValue> pairs = split_key_values(payload);
  const KeyValue last = pairs.empty() ? KeyValue{} : pairs.back();
  // "dev=8388624 ... cmd=" of a raw record: all fields, and texts may be empty.
  // Of what is printed otherwise, the first word is no key mostly: "bdi 8:0: limit=1".
  const bool is_raw_style = payload.find_first_of("= :,") == payload.find('=');
  const bool is_last_of_raw = is_raw_style && std::ranges::any_of(known, [&](const Reference* one) {
    const auto field = one->last_field();
    return !field.name.empty() && field.name == last.key &&
           (field.is_text || !last.value.empty());
  });
  if (seen != events_.end()) {
    const Event& event = *seen->second;
    bool any = false;
    // A reference that no other line fits may print the first half of this one.
    for (const Candidate& candidate : event.candidates) {
      if (candidate.fields.empty()) continue;  // not used yet
      any = true;
      if (!is_raw && is_printed_by(*candidate.reference, payload)) return true;
    }
    if (!event.named_fields.empty()) {
      return has_all_keys(event, pairs) && (!last.value.empty() || is_last_of_raw);
    }
    if (any) return false;
  }
  if (is_raw || is_last_of_raw) return true;
  return std::ranges::none_of(known, [](const Reference* one) { return one->print() != nullptr; }) ||
         std::ranges::any_of(
             known, [&](const Reference* one) { return is_printed_by(*one, payload); });
}

bool PayloadReader::is_whole_log(std::string_view name, std::string_view payload) {
  return std::ranges::any_of(references_.find("printk", name), [&](const Reference* one) {
    return is_printed_by(*one, payload);
  });
}

bool PayloadReader::read_log(std::string_view name, std::string_view payload, std::int64_t ts) {
  Event& read = event("printk", name);
  cells_.clear();
  if (!match(read, payload)) return false;
  if (read.is_wanted) {
    put(read, ts, EventLead::kNoCpu, EventLead::kNoTid);
  } else {
    sink_.count(read.index, ts, EventLead::kNoTid);
  }
  return true;
}

bool PayloadReader::read_nameless(const LineHead& head) {
  const std::string_view text = head.payload;
  constexpr auto kNpos = std::string_view::npos;
  // Function tracer: "schedule <-do_nanosleep".
  if (const auto arrow = text.find(" <-"); arrow != kNpos) {
    record(head, "ftrace", "function",
           {{"ip", without_lead(text.substr(0, arrow))},
            {"parent_ip", without_lead(text.substr(arrow + 3))}});
    return true;
  }
  // The kernel's print of system calls: "sys_write(fd: 1, buf: 7ffe, count: 10)"
  // and "sys_write -> 0x10", all numbers in hex.
  if (!text.starts_with("sys_")) return false;
  if (std::min(text.find(" -> "), text.find('(')) > kMaxTextName) return false;
  if (const auto arrow = text.find(" -> "); arrow != kNpos) {
    std::uint64_t result = 0;
    if (parse_number(text, arrow + 4, 16, result) == kNpos) return false;
    record(head, "syscalls", "sys_exit_" + std::string(text.substr(4, arrow - 4)),
           {{"ret", static_cast<std::int64_t>(result)}});
    return true;
  }
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == kNpos || close == kNpos || close < open) return false;
  Event& call = event("syscalls", "sys_enter_" + std::string(text.substr(4, open - 4)));
  if (!call.is_wanted) {
    sink_.count(call.index, head.ts, head.tid);
    return true;
  }
  cells_.clear();
  for (const KeyValue& pair : split_key_values(text.substr(open + 1, close - open - 1))) {
    std::uint64_t number = 0;
    if (pair.key.empty() || parse_number(pair.value, 0, 16, number) == kNpos) continue;
    add_named(call, pair.key, static_cast<std::int64_t>(number));
  }
  put(call, head.ts, head.cpu, head.tid);
  return true;
}

}  // namespace wbscope
