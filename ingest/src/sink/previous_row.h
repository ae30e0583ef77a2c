// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it, for events whose rows are read in
// pairs: a query follows prev_seq, where it would sort all rows otherwise, and
// passes over rows that say what the one before said (repeats_count).
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
  [[nodiscard]] std::string_view group(std::string_view system, std::string_view name) const;
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
  struct Chosen {
    std::string event;
    PreviousOf of;
    std::string group;
  };
  struct News {
    std::string event;
    std::string other;
    std::vector<std::string> fields;
  };

  [[nodiscard]] const Chosen* chosen(std::string_view system, std::string_view name) const;

  std::vector<Chosen> chosen_;
  std::vector<std::pair<std::string, std::vector<std::string>>> repeats_;
  std::vector<News> news_;
};

// What the rows of an event, or of a group, were preceded by; rows come in
// their order.
class PreviousRow {
 public:
  // has_news: a row repeats the one before only if tell() tells the same.
  explicit PreviousRow(PreviousOf of = PreviousOf::kNone, bool has_news = false,
                       bool is_of_group = false)
      : of_(of), has_news_(has_news), is_of_group_(is_of_group) {}

  [[nodiscard]] bool is_kept() const noexcept { return of_ != PreviousOf::kNone; }
  // Whether event_task has the rows of each task.
  [[nodiscard]] bool is_counted() const noexcept { return is_kept() && !is_of_group_; }
  // A record of another event without fields: what comes is no repeat of what
  // was before it.
  void tell() noexcept { ++news_count_; }
  // One that says this to its thread. All records come in their order.
  void tell(std::int32_t tid, std::string_view said);
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

  [[nodiscard]] std::int64_t before_in_group(const EventLead& lead, std::uint64_t key);

  PreviousOf of_;
  bool has_news_;
  bool is_of_group_;
  bool has_forgotten_ = false;
  std::uint64_t news_count_ = 1;
  std::string told_;  // by the last record that had fields to tell
  std::unordered_map<std::int32_t, std::uint64_t> told_tasks_;  // news_count_ at that time
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
