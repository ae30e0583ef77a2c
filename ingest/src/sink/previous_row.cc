// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it.
#include "sink/previous_row.h"

#include <algorithm>

namespace wbscope {
namespace {

// A hostile trace can have as many tasks as records.
constexpr std::size_t kMaxTasks = 1u << 20;

// event: "system:name".
bool is_named(std::string_view event, std::string_view system, std::string_view name) {
  const auto colon = event.find(':');
  if (event.substr(colon + 1) != name) return false;
  return system.empty() || event.substr(0, colon) == system;
}

}  // namespace

PreviousOf PreviousChoice::of(std::string_view system, std::string_view name) const {
  for (const auto& [event, of] : chosen_) {
    if (is_named(event, system, name)) return of;
  }
  return PreviousOf::kNone;
}

bool PreviousChoice::is_of_others(std::string_view system, std::string_view name) const {
  return std::ranges::any_of(others_, [&](const auto& pair) {
    return is_named(pair.first, system, name) || is_named(pair.second, system, name);
  });
}

bool PreviousChoice::is_other(std::string_view other_system, std::string_view other_name,
                              std::string_view system, std::string_view name) const {
  return std::ranges::any_of(others_, [&](const auto& pair) {
    return is_named(pair.first, system, name) && is_named(pair.second, other_system, other_name);
  });
}

std::vector<std::string> PreviousChoice::repeats(std::string_view system,
                                                 std::string_view name) const {
  for (const auto& [event, fields] : repeats_) {
    if (is_named(event, system, name)) return fields;
  }
  return {};
}

bool PreviousChoice::has_news(std::string_view system, std::string_view name) const {
  return std::ranges::any_of(
      news_, [&](const News& news) { return is_named(news.event, system, name); });
}

bool PreviousChoice::is_of_news(std::string_view system, std::string_view name) const {
  return std::ranges::any_of(news_, [&](const News& news) {
    return is_named(news.event, system, name) || is_named(news.other, system, name);
  });
}

const std::vector<std::string>* PreviousChoice::news(std::string_view other_system,
                                                     std::string_view other_name,
                                                     std::string_view system,
                                                     std::string_view name) const {
  for (const auto& news : news_) {
    if (is_named(news.other, other_system, other_name) && is_named(news.event, system, name)) {
      return &news.fields;
    }
  }
  return nullptr;
}

void PreviousRow::tell(std::int32_t tid, std::string_view said) {
  if (told_ != said) {
    told_ = said;
    ++news_count_;
  }
  if (told_tasks_.size() >= kMaxTasks && !told_tasks_.contains(tid)) told_tasks_.clear();
  told_tasks_[tid] = news_count_;
}

PreviousRow::Last& PreviousRow::last(const EventLead& lead) {
  const auto tid = of_ == PreviousOf::kTask ? static_cast<std::uint32_t>(lead.tid) : 0u;
  const std::uint64_t key = std::uint64_t{lead.buffer} << 32 | tid;
  if (last_.size() >= kMaxTasks && !last_.contains(key)) last_.clear();
  return last_[key];
}

void PreviousRow::pass(const EventLead& lead) {
  Last& before = last(lead);
  before = {};
  before.seq = lead.seq;
}

void PreviousRow::pass_all(const PreviousRow& other) {
  if (of_ != other.of_) return;
  for (const auto& [key, before] : other.last_) {
    Last& last = last_[key];
    if (last.seq >= before.seq) continue;
    last = {};
    last.seq = before.seq;
  }
}

void PreviousRow::link(EventLead& lead, std::string_view said) {
  if (of_ == PreviousOf::kNone) return;
  Last& last = this->last(lead);
  lead.prev_seq = std::exchange(last.seq, lead.seq);
  const bool is_same = lead.prev_seq != EventLead::kNoSeq && last.said == said;
  if (!is_same) last.said = said;
  bool is_repeat = is_same;
  if (has_news_) {
    const auto told = told_tasks_.find(lead.tid);
    const auto news = told == told_tasks_.end() ? kNoNews : std::exchange(told->second, kNoNews);
    is_repeat = is_same && news != kNoNews && news == last.news;
    last.news = news;
  }
  last.repeats = is_repeat ? last.repeats + 1 : 0;
  lead.repeats = last.repeats;
}

}  // namespace wbscope
