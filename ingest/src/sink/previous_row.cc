// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it.
#include "sink/previous_row.h"

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

std::vector<std::string> PreviousChoice::repeats(std::string_view system,
                                                 std::string_view name) const {
  for (const auto& [event, fields] : repeats_) {
    if (is_named(event, system, name)) return fields;
  }
  return {};
}

void PreviousRow::link(EventLead& lead, std::string_view said) {
  if (of_ == PreviousOf::kNone) return;
  const auto tid = of_ == PreviousOf::kTask ? static_cast<std::uint32_t>(lead.tid) : 0u;
  const std::uint64_t key = std::uint64_t{lead.buffer} << 32 | tid;
  if (last_.size() >= kMaxTasks && !last_.contains(key)) last_.clear();
  Last& last = last_[key];
  lead.prev_seq = std::exchange(last.seq, lead.seq);
  lead.is_repeat = lead.prev_seq != EventLead::kNoSeq && last.said == said;
  if (!lead.is_repeat) last.said = said;
}

}  // namespace wbscope
