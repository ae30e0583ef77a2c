// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it, for events whose rows are read in
// pairs: a query follows prev_seq, where it would sort all rows otherwise, and
// passes over rows that say what the one before said (repeats_count).
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

  // "Before" a row of the event is one of `other`, too, if that came later: at
  // one end of a call stands what is at its other end.
  void add_other(std::string event, std::string other) {
    others_.emplace_back(std::move(event), std::move(other));
  }

  // The event has a column repeats_count, too: about these fields, those of them
  // that its format has.
  void add_repeats(std::string event, std::vector<std::string> fields) {
    repeats_.emplace_back(std::move(event), std::move(fields));
  }

  // A repeat of the event has to be more: that the thread's last record of
  // `other`, which came since its previous row, says of these fields what the
  // one of that row said. Without fields: that there was no `other` between
  // the two, by whatever thread.
  void add_news(std::string event, std::string other, std::vector<std::string> fields) {
    news_.push_back({std::move(event), std::move(other), std::move(fields)});
  }

  // system "" is one that the trace does not tell: any.
  [[nodiscard]] PreviousOf of(std::string_view system, std::string_view name) const;
  // Has such an other event, or is one.
  [[nodiscard]] bool is_of_others(std::string_view system, std::string_view name) const;
  // Whether a row of the first event can be "before" one of the second.
  [[nodiscard]] bool is_other(std::string_view other_system, std::string_view other_name,
                              std::string_view system, std::string_view name) const;
  // Empty: no column repeats_count.
  [[nodiscard]] std::vector<std::string> repeats(std::string_view system,
                                                 std::string_view name) const;
  [[nodiscard]] bool has_news(std::string_view system, std::string_view name) const;
  // Has news, or is one.
  [[nodiscard]] bool is_of_news(std::string_view system, std::string_view name) const;
  // The fields of add_news(); nullptr: the first event is none of the second.
  [[nodiscard]] const std::vector<std::string>* news(
      std::string_view other_system, std::string_view other_name, std::string_view system,
      std::string_view name) const;

 private:
  struct News {
    std::string event;
    std::string other;
    std::vector<std::string> fields;
  };

  std::vector<std::pair<std::string, PreviousOf>> chosen_;
  std::vector<std::pair<std::string, std::string>> others_;
  std::vector<std::pair<std::string, std::vector<std::string>>> repeats_;
  std::vector<News> news_;
};

// What the rows of one event were preceded by; rows come in their order.
class PreviousRow {
 public:
  // has_news: a row repeats the one before only if tell() tells the same.
  explicit PreviousRow(PreviousOf of = PreviousOf::kNone, bool has_news = false)
      : of_(of), has_news_(has_news) {}

  [[nodiscard]] bool is_kept() const noexcept { return of_ != PreviousOf::kNone; }
  // A record of another event without fields: what comes is no repeat of what
  // was before it.
  void tell() noexcept { ++news_count_; }
  // One that says this to its thread. All records come in their order.
  void tell(std::int32_t tid, std::string_view said);
  // A row of another event, which is "before" the next one.
  void pass(const EventLead& lead);
  // All rows of another event so far; both of tasks, or both of any.
  void pass_all(const PreviousRow& other);
  // Tells the row which one is before it and how many before it, one after the
  // other, said the same; the next one will come after this one.
  void link(EventLead& lead, std::string_view said = {});

 private:
  struct Last {
    std::int64_t seq = EventLead::kNoSeq;
    std::string said;
    std::int64_t repeats = 0;
    std::uint64_t news = kNoNews;
  };
  static constexpr std::uint64_t kNoNews = 0;

  [[nodiscard]] Last& last(const EventLead& lead);

  PreviousOf of_;
  bool has_news_;
  std::uint64_t news_count_ = 1;
  std::string told_;  // by the last record that had fields to tell
  std::unordered_map<std::int32_t, std::uint64_t> told_tasks_;  // news_count_ at that time
  std::unordered_map<std::uint64_t, Last> last_;  // by buffer and task
};

}  // namespace wbscope
