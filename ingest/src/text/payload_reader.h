// SPDX-License-Identifier: Apache-2.0
// PayloadReader: payloads of one trace into values, by the reference that
// fits, else as key=value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/key_values.h"
#include "text/line_head.h"
#include "text/payload_match.h"
#include "text/references.h"
#include "text/text_sink.h"

namespace wbscope {

class PayloadReader {
 public:
  // release: of the traced kernel, "" when it is not known.
  PayloadReader(const References& references, TextSink& sink, std::string_view release);

  // First pass over a part of the trace: which references fit. Many kernels
  // print an event with the same words and mean other numbers (labels of an
  // enum), so the events that tell kernels apart decide for those that do not.
  void sample(std::string_view system, std::string_view event, std::string_view payload);
  void decide();

  // The record of an event.
  void read(const LineHead& head);
  // A record without a task, of the kernel log. False when no reference fits.
  [[nodiscard]] bool read_log(std::string_view name, std::string_view payload, std::int64_t ts);
  // What tracers print without the name of an event. False when it is none.
  [[nodiscard]] bool read_nameless(const LineHead& head);

  // Whether the last record that was given has all that others of its event have, or where
  // there are none, all that a reference prints. To be asked before it is read.
  [[nodiscard]] bool is_whole(const LineHead& head);
  [[nodiscard]] bool is_whole_log(std::string_view name, std::string_view payload);

  [[nodiscard]] std::uint64_t generic_records() const noexcept { return generic_; }

 private:
  struct Candidate {
    const Reference* reference;
    std::uint32_t matches = 0;
    std::vector<std::uint32_t> fields;  // of the sink; empty until it is used
  };
  struct Event {
    std::string system;
    std::string name;
    bool is_wanted = false;
    bool is_decided = false;
    std::uint32_t index = 0;
    std::optional<std::uint32_t> flags_field;  // of the sink
    std::uint32_t samples = 0;
    std::size_t current = 0;
    std::vector<Candidate> candidates;
    const Reference* described = nullptr;
    std::unordered_map<std::string, std::uint32_t> named_fields;
  };

  Event& event(std::string_view system, std::string_view name);
  void order(Event& event) const;
  bool match(Event& event, std::string_view payload);
  void use(Event& event, Candidate& candidate);
  void read_generic(Event& event, std::string_view payload, bool as_printed);
  void add_named(Event& event, std::string_view name, const Value& value);
  void record(const LineHead& head, std::string_view system, std::string_view name,
              std::initializer_list<std::pair<std::string_view, Value>> values);
  void read_print(const LineHead& head, std::string_view ip, std::string_view buf);
  void put(Event& event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid);
  bool is_printed_by(const Reference& reference, std::string_view payload);
  static bool has_all_keys(const Event& event, const std::vector<KeyValue>& pairs);
  static std::uint32_t printed_base(const Event& event, std::string_view name);
  static const FieldPlan* known_field(const Event& event, std::string_view name);

  const References& references_;
  TextSink& sink_;
  std::string release_;  // "6.12."
  PayloadMatcher matcher_;
  std::map<std::string, double> kernel_score_;
  std::unordered_map<std::string, std::unique_ptr<Event>> events_;
  std::string key_;
  std::vector<ValueWriter::Cell> cells_;
  std::uint64_t generic_ = 0;
};

}  // namespace wbscope
