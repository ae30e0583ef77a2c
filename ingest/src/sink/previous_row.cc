// SPDX-License-Identifier: Apache-2.0
// Links from a row to the row before it.
#include "sink/previous_row.h"

namespace wbscope {
namespace {

// A hostile trace can have as many tasks as records.
constexpr std::size_t kMaxTasks = 1u << 20;

}  // namespace

PreviousOf PreviousChoice::of(std::string_view system, std::string_view name) const {
  for (const auto& [event, of] : chosen_) {
    const auto colon = event.find(':');
    const std::string_view text(event);
    if (text.substr(colon + 1) != name) continue;
    if (system.empty() || text.substr(0, colon) == system) return of;
  }
  return PreviousOf::kNone;
}

std::int64_t PreviousRow::replace(const EventLead& lead) {
  if (of_ == PreviousOf::kNone) return EventLead::kNoSeq;
  const auto tid = of_ == PreviousOf::kTask ? static_cast<std::uint32_t>(lead.tid) : 0u;
  const std::uint64_t key = std::uint64_t{lead.buffer} << 32 | tid;
  const auto [place, is_new] = last_.try_emplace(key, lead.seq);
  if (!is_new) return std::exchange(place->second, lead.seq);
  if (last_.size() > kMaxTasks) {
    last_.clear();
    last_.emplace(key, lead.seq);
  }
  return EventLead::kNoSeq;
}

}  // namespace wbscope
