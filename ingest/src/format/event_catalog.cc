// SPDX-License-Identifier: Apache-2.0
// Event formats of a trace as plans for reading records.
#include "format/event_catalog.h"

#include <algorithm>
#include <set>
#include <thread>

#include "base/child_process.h"
#include "base/names.h"
#include "format/format_share.h"

namespace wbscope {
namespace {

constexpr std::uint32_t kMaxEventId = 65535;
constexpr int kMaxDeaths = 32;
// The formats of a kernel take 0.1 s; those of a hostile file must not take
// long, however often they are tried.
constexpr double kMaxCpuSeconds = 4;
constexpr std::uint32_t kMostShares = 4;
constexpr std::size_t kSystemsOfAll = 30;  // nobody names so many systems
constexpr std::uint32_t kLeastFormats = 128;  // of a share, to be worth a process

void add_number(const char* name, std::uint32_t offset, std::uint32_t bytes, EventPlan& plan) {
  plan.fields.push_back({.name = name, .column = name, .type = {}, .offset = offset, .bytes = bytes});
}

// The common fields that are no column already, then all other bytes.
void add_raw_fields(EventPlan& plan, const CommonFields& common) {
  if (common.flags_offset) add_number("common_flags", *common.flags_offset, 1, plan);
  if (common.preempt_offset) add_number("common_preempt_count", *common.preempt_offset, 1, plan);
  plan.fields.push_back({.name = "payload",
                         .column = "payload",
                         .type = {},
                         .kind = FieldKind::kBytes,
                         .offset = common.payload,
                         .bytes = 0});
  plan.min_bytes = std::max(common.end, common.payload);
}

EventPlan unknown_event(const CommonFields& common) {
  EventPlan plan;
  plan.system = "unknown";
  plan.name = "unknown";
  plan.status = FormatStatus::kNone;
  add_number("event_id", common.type_offset, common.type_bytes, plan);
  add_raw_fields(plan, common);
  return plan;
}

// One for each processor, for the formats of a kernel.
std::uint32_t count_shares(const TraceInfo& info) {
  const auto most = static_cast<std::uint32_t>(info.formats.size()) / kLeastFormats;
  return std::clamp(std::min(std::thread::hardware_concurrency(), most), 1u, kMostShares);
}

// libtraceevent was made for the kernel's own text, and some damaged text makes
// it crash. So only child processes show it any; a format that kills one is
// shown to the next without its print format, then not at all.
std::vector<FormatShare> read_in_children(const TraceInfo& info) {
  std::vector<Trust> trust(info.formats.size() + 1, Trust::kWhole);  // last: header_page
  std::vector<std::optional<FormatShare>> shares(count_shares(info));
  const auto read = [&](std::size_t i, const Announce& announce) {
    return read_formats(info, trust, {.first = i, .step = shares.size()}, announce);
  };
  CpuBudget budget(kMaxCpuSeconds);
  for (int deaths = 0; deaths <= kMaxDeaths && !budget.is_spent();) {
    const Trust shown_header = trust.back();
    std::vector<std::pair<std::size_t, ChildWork>> children;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (shares[i]) continue;
      children.emplace_back(
          i, ChildWork([&](const Announce& announce) { return to_bytes(read(i, announce)); },
                       budget));
    }
    if (children.empty()) break;
    for (auto& [i, child] : children) {
      const ChildResult result = child.finish(budget);
      if (!result.died_in) shares[i] = to_share(result.bytes, info.formats.size());
      if (shares[i]) continue;
      ++deaths;
      const auto step = std::min<std::size_t>(result.died_in.value_or(i), info.formats.size());
      trust[step] = trust[step] == Trust::kWhole ? Trust::kWithoutPrint : Trust::kNothing;
    }
    // header_page tells how long a long is, in every format.
    if (trust.back() != shown_header) std::fill(shares.begin(), shares.end(), std::nullopt);
  }
  std::vector<FormatShare> all;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i]) {
      // Nothing is shown to libtraceevent, so this process can do it.
      std::fill(trust.begin(), trust.end(), Trust::kNothing);
      shares[i] = read(i, [](std::uint32_t) {});
    }
    all.push_back(*std::move(shares[i]));
  }
  return all;
}

}  // namespace

EventCatalog build_event_catalog(const TraceInfo& info) {
  std::vector<FormatShare> shares = read_in_children(info);
  EventCatalog catalog;
  catalog.page = shares.front().page;
  std::vector<EventPlan*> plans(info.formats.size());
  std::size_t first = info.formats.size();  // that was read
  for (auto& share : shares) {
    for (auto& placed : share.plans) plans[placed.format] = &placed.plan;
    if (!share.common || share.common->format >= first) continue;
    first = share.common->format;
    catalog.common = share.common->fields;
  }
  NamesTaken tables;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i] == nullptr) continue;
    EventPlan& plan = *plans[i];
    const FormatText& format = info.formats[i];
    plan.text = format.text;
    const CommonName named = common_name(format.system, plan.name);
    plan.system = std::string(named.system);
    plan.name = std::string(named.name);
    // Another recording went on at the same time: its events keep its name.
    if (seen.contains(plan.full_name())) plan.system = format.system;
    if (plan.id > kMaxEventId || !seen.insert(plan.full_name()).second) continue;
    catalog.events.push_back(std::move(plan));
  }
  catalog.unknown = static_cast<std::uint32_t>(catalog.events.size());
  catalog.events.push_back(unknown_event(catalog.common));
  for (auto& plan : catalog.events) {
    plan.table = event_table_name(plan.system, plan.name, tables);
    if (plan.status == FormatStatus::kRaw) add_raw_fields(plan, catalog.common);
    plan.min_bytes = std::max(plan.min_bytes, catalog.common.end);
  }
  return catalog;
}

void add_flags(const EventsWithFlags& events, EventCatalog& catalog) {
  if (!catalog.common.flags_offset) return;
  for (EventPlan& plan : catalog.events) {
    if (plan.status == FormatStatus::kParsed && events.contains(plan.full_name())) {
      add_number("common_flags", *catalog.common.flags_offset, 1, plan);
    }
  }
}

bool EventCatalog::has_all_formats() const {
  std::set<std::string_view> systems;
  for (const EventPlan& event : events) systems.insert(event.system);
  return systems.size() >= kSystemsOfAll;
}

std::vector<bool> recordable_events(const EventCatalog& catalog,
                                    const std::vector<std::uint64_t>& counted) {
  std::vector<bool> recordable(catalog.events.size(), true);
  if (!catalog.has_all_formats()) return recordable;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < std::min(counted.size(), catalog.events.size()); ++i) {
    if (counted[i] > 0) seen.insert(catalog.events[i].system);
  }
  if (seen.contains("timer")) return recordable;
  for (std::size_t i = 0; i < catalog.events.size(); ++i) {
    recordable[i] = seen.contains(catalog.events[i].system);
  }
  return recordable;
}

}  // namespace wbscope
