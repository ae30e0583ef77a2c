// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it.
#include "sink/previous_row.h"

#include <algorithm>

namespace wbscope {
namespace {

// A hostile trace can have as many tasks as records.
constexpr std::size_t kMaxTasks = 1u << 20;
// Each group has such a table; of a long trace most of the tasks have exited.
constexpr std::size_t kMaxTasksOfGroup = 1u << 18;

// event: "system:name".
bool is_named(std::string_view event, std::string_view system, std::string_view name) {
  const auto colon = event.find(':');
  if (event.substr(colon + 1) != name) return false;
  return system.empty() || event.substr(0, colon) == system;
}

}  // namespace

const PreviousChoice::Chosen* PreviousChoice::chosen(std::string_view system,
                                                     std::string_view name) const {
  const auto found = std::ranges::find_if(
      chosen_, [&](const Chosen& one) { return is_named(one.event, system, name); });
  return found == chosen_.end() ? nullptr : &*found;
}

PreviousOf PreviousChoice::of(std::string_view system, std::string_view name) const {
  const auto* found = chosen(system, name);
  return found ? found->of : PreviousOf::kNone;
}

std::string_view PreviousChoice::group(std::string_view system, std::string_view name) const {
  const auto* found = chosen(system, name);
  return found ? std::string_view(found->group) : std::string_view();
}

std::vector<std::string> PreviousChoice::repeats(std::string_view system,
                                                 std::string_view name) const {
  for (const auto& [event, fields] : repeats_) {
    if (is_named(event, system, name)) return fields;
  }
  return {};
}

bool PreviousChoice::has_context(std::string_view system, std::string_view name) const {
  return std::ranges::any_of(
      contexts_, [&](const Context& context) { return is_named(context.event, system, name); });
}

bool PreviousChoice::is_in_context(std::string_view system, std::string_view name) const {
  return std::ranges::any_of(contexts_, [&](const Context& context) {
    return is_named(context.event, system, name) || is_named(context.other, system, name);
  });
}

const std::vector<std::string>* PreviousChoice::context_fields(
    std::string_view other_system, std::string_view other_name, std::string_view system,
    std::string_view name) const {
  for (const auto& context : contexts_) {
    if (is_named(context.other, other_system, other_name) &&
        is_named(context.event, system, name)) {
      return &context.fields;
    }
  }
  return nullptr;
}

void PreviousRow::note_context(std::int32_t tid, std::string_view values) {
  if (context_ != values) {
    context_ = values;
    ++context_version_;
  }
  if (task_contexts_.size() >= kMaxTasks && !task_contexts_.contains(tid)) task_contexts_.clear();
  task_contexts_[tid] = context_version_;
}

std::int64_t PreviousRow::before_in_group(const EventLead& lead, std::uint64_t key) {
  if (last_of_group_.size() >= kMaxTasksOfGroup && !last_of_group_.contains(key)) {
    last_of_group_.clear();
    has_forgotten_ = true;
  }
  std::int64_t& last = last_of_group_[key];
  const std::int64_t before = std::exchange(last, lead.seq);
  return before == EventLead::kNoSeq && has_forgotten_ ? EventLead::kForgottenSeq : before;
}

void PreviousRow::link(EventLead& lead, std::string_view values) {
  if (of_ == PreviousOf::kNone) return;
  const auto tid = of_ == PreviousOf::kTask ? static_cast<std::uint32_t>(lead.tid) : 0u;
  const std::uint64_t key = std::uint64_t{lead.buffer} << 32 | tid;
  if (is_of_group_) {
    lead.prev_seq = before_in_group(lead, key);
    return;
  }
  if (last_.size() >= kMaxTasks && !last_.contains(key)) last_.clear();
  Last& last = last_[key];
  lead.prev_seq = std::exchange(last.seq, lead.seq);
  const bool is_same = lead.prev_seq != EventLead::kNoSeq && last.values == values;
  if (!is_same) last.values = values;
  bool is_repeat = is_same;
  if (has_context_) {
    const auto found = task_contexts_.find(lead.tid);
    const auto context =
        found == task_contexts_.end() ? kNoContext : std::exchange(found->second, kNoContext);
    is_repeat = is_same && context != kNoContext && context == last.context;
    last.context = context;
  }
  last.repeats = is_repeat ? last.repeats + 1 : 0;
  lead.repeats = last.repeats;
}

std::shared_ptr<PreviousRow> PreviousRows::of(const PreviousChoice& choice,
                                              std::string_view system, std::string_view name) {
  const auto group = choice.group(system, name);
  const auto make = [&] {
    return std::make_shared<PreviousRow>(choice.of(system, name), choice.has_context(system, name),
                                         !group.empty());
  };
  if (group.empty()) return make();
  const auto found = groups_.find(group);
  return found == groups_.end() ? groups_.emplace(group, make()).first->second : found->second;
}

}  // namespace wbscope
