// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it, for events whose rows are read in
// pairs: a query follows prev_seq, where it would sort all rows otherwise, and
// passes over rows that say what the one before said (is_repeat).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sink/event_table.h"

namespace wbscope {

// Which row of the same event and buffer is "before".
enum class PreviousOf : std::uint8_t {
  kNone,  // no column prev_seq
  kTask,  // the last one of the same task
  kAny,   // the last one
};

// The events that have a column prev_seq.
class PreviousChoice {
 public:
  // event: "system:name".
  void add(std::string event, PreviousOf of) { chosen_.emplace_back(std::move(event), of); }

  // The event has a column is_repeat, too: about these fields, those of them
  // that its format has.
  void add_repeats(std::string event, std::vector<std::string> fields) {
    repeats_.emplace_back(std::move(event), std::move(fields));
  }

  // system "" is one that the trace does not tell: any.
  [[nodiscard]] PreviousOf of(std::string_view system, std::string_view name) const;
  // Empty: no column is_repeat.
  [[nodiscard]] std::vector<std::string> repeats(std::string_view system,
                                                 std::string_view name) const;

 private:
  std::vector<std::pair<std::string, PreviousOf>> chosen_;
  std::vector<std::pair<std::string, std::vector<std::string>>> repeats_;
};

// What the rows of one event were preceded by; rows come in their order.
class PreviousRow {
 public:
  explicit PreviousRow(PreviousOf of = PreviousOf::kNone) : of_(of) {}

  [[nodiscard]] bool is_kept() const noexcept { return of_ != PreviousOf::kNone; }
  // Tells the row which one is before it and whether that said the same; the
  // next one will come after this one.
  void link(EventLead& lead, std::string_view said = {});

 private:
  struct Last {
    std::int64_t seq = EventLead::kNoSeq;
    std::string said;
  };

  PreviousOf of_;
  std::unordered_map<std::uint64_t, Last> last_;  // by buffer and task
};

}  // namespace wbscope
