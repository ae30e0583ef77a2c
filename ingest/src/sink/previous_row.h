// SPDX-License-Identifier: Apache-2.0
// The delta columns of an event table, which relate a row to the one before it:
//   prev_seq       its seq: a query follows it, where it would have to sort all rows
//   repeats_count  how many rows before this one, one after the other, have the same
//                  values: a query skips rows that change nothing
// Whether values are the same may depend on a context, too: values of other events
// that the thread had recorded just before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  // event: "system:name". Before a row of it is one of any event of the same
  // group, such as both ends of a call; "": of the event alone.
  void add(std::string event, PreviousOf of, std::string group = {}) {
    chosen_.push_back({std::move(event), of, std::move(group)});
  }

  // The event has a column repeats_count of these fields, if its format has them.
  void add_repeats(std::string event, std::vector<std::string> fields) {
    repeats_.emplace_back(std::move(event), std::move(fields));
  }

  // `other` is context of the event: a row repeats the one before only if the last
  // record of `other` that its thread had since then has the same values of these
  // fields. Without fields: only if no `other` occurred in between, in any thread.
  void add_context(std::string event, std::string other, std::vector<std::string> fields) {
    contexts_.push_back({std::move(event), std::move(other), std::move(fields)});
  }

  // system "": not known, any.
  [[nodiscard]] PreviousOf of(std::string_view system, std::string_view name) const;
  [[nodiscard]] std::string_view group(std::string_view system, std::string_view name) const;
  // Empty: no column repeats_count.
  [[nodiscard]] std::vector<std::string> repeats(std::string_view system,
                                                 std::string_view name) const;
  [[nodiscard]] bool has_context(std::string_view system, std::string_view name) const;
  // Whether it has a context, or is in one.
  [[nodiscard]] bool is_in_context(std::string_view system, std::string_view name) const;
  // The fields of add_context(); nullptr: the first event is no context of the second.
  [[nodiscard]] const std::vector<std::string>* context_fields(
      std::string_view other_system, std::string_view other_name, std::string_view system,
      std::string_view name) const;

 private:
  struct Chosen {
    std::string event;
    PreviousOf of;
    std::string group;
  };
  struct Context {
    std::string event;
    std::string other;
    std::vector<std::string> fields;
  };

  [[nodiscard]] const Chosen* chosen(std::string_view system, std::string_view name) const;

  std::vector<Chosen> chosen_;
  std::vector<std::pair<std::string, std::vector<std::string>>> repeats_;
  std::vector<Context> contexts_;
};

// The row before, of an event or of a group. Rows come in their order.
class PreviousRow {
 public:
  explicit PreviousRow(PreviousOf of = PreviousOf::kNone, bool has_context = false,
                       bool is_of_group = false)
      : of_(of), has_context_(has_context), is_of_group_(is_of_group) {}

  [[nodiscard]] bool is_kept() const noexcept { return of_ != PreviousOf::kNone; }
  // Whether event_task has the rows of each task.
  [[nodiscard]] bool is_counted() const noexcept { return is_kept() && !is_of_group_; }
  // An event of the context without fields: the next row is no repeat.
  void note_change() noexcept { ++context_version_; }
  // One with these values, of this thread. All records come in their order.
  void note_context(std::int32_t tid, std::string_view values);
  // Sets prev_seq and repeats_count of a row with these values.
  void link(EventLead& lead, std::string_view values = {});

 private:
  struct Last {
    std::int64_t seq = EventLead::kNoSeq;
    std::string values;
    std::int64_t repeats = 0;
    std::uint64_t context = kNoContext;
  };
  static constexpr std::uint64_t kNoContext = 0;

  [[nodiscard]] std::int64_t before_in_group(const EventLead& lead, std::uint64_t key);

  PreviousOf of_;
  bool has_context_;
  bool is_of_group_;
  bool has_forgotten_ = false;
  std::uint64_t context_version_ = 1;
  std::string context_;  // values of the last record of the context
  std::unordered_map<std::int32_t, std::uint64_t> task_contexts_;  // its version by thread
  std::unordered_map<std::uint64_t, Last> last_;  // by buffer and task
  std::unordered_map<std::uint64_t, std::int64_t> last_of_group_;  // the same: seq
};

// One for each event, or for each group.
class PreviousRows {
 public:
  [[nodiscard]] std::shared_ptr<PreviousRow> of(const PreviousChoice& choice,
                                                std::string_view system, std::string_view name);

 private:
  std::map<std::string, std::shared_ptr<PreviousRow>, std::less<>> groups_;
};

}  // namespace wbscope
