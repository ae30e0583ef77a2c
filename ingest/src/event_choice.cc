// SPDX-License-Identifier: Apache-2.0
// Which events of a trace are loaded.
#include "event_choice.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"

namespace wbscope {
namespace {

constexpr std::size_t kMostNear = 5;
constexpr std::size_t kMostShown = 80;

bool matches(const std::string& glob, const std::string& text) {
  return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

// How many letters differ (Levenshtein), for names of some tens of letters.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t changed = corner + (one[i] == other[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// What may have been meant: systems, and names as the glob has them.
std::string nearest(const std::string& glob, const std::vector<EventName>& events) {
  const bool is_full = glob.find(':') != std::string::npos;
  std::vector<std::string> names;
  for (const auto& [system, name] : events) {
    names.push_back(is_full ? system + ":" + name : name);
    if (is_full) names.push_back(system + ":*");
    if (!is_full && !system.empty()) names.push_back(system);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const auto& name : names) {
    const std::size_t letters = name.starts_with(glob) ? 1 : distance(glob, name);
    if (letters <= 1 + glob.size() / 4) near.emplace_back(letters, name);
  }
  std::sort(near.begin(), near.end());
  std::string told;
  for (std::size_t n = 0; n < std::min(near.size(), kMostNear); ++n) {
    told += (told.empty() ? "" : ", ") + near[n].second;
  }
  return told;
}

// The systems of a trace, for who asked for what is nothing like any event of it.
std::string systems_of(const std::vector<EventName>& events) {
  std::set<std::string> systems;
  for (const EventName& event : events) systems.insert(event.system);
  std::string told;
  for (const std::string& system : systems) told += (told.empty() ? "systems " : ", ") + system;
  return told;
}

// The events that most people want are there, or whatever comes first.
std::string some_system(const std::vector<EventName>& events) {
  constexpr std::string_view kWanted = "writeback";
  const auto found = std::find_if(events.begin(), events.end(), [&](const EventName& event) {
    return event.system == kWanted;
  });
  if (found != events.end()) return found->system;
  return events.empty() ? "*" : events.front().system;
}

// As one word of a shell.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:-.";
  return word.find_first_not_of(kPlain) == std::string::npos ? word : "'" + word + "'";
}

}  // namespace

bool EventChoice::has(std::string_view system, std::string_view name) const {
  if (all_) return true;
  const std::string short_name(name);
  const std::string full_name = std::string(system) + ":" + short_name;
  return std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
    const auto colon = glob.find(':');
    if (colon == std::string::npos) return glob == system || matches(glob, short_name);
    return system.empty() ? matches(glob.substr(colon + 1), short_name) : matches(glob, full_name);
  });
}

void require_matches(const std::vector<std::string>& globs, const std::vector<EventName>& events) {
  for (const auto& glob : globs) {
    const EventChoice choice({glob}, false);
    const bool is_there = std::any_of(events.begin(), events.end(), [&](const EventName& event) {
      return choice.has(event.system, event.name);
    });
    if (is_there) continue;
    const std::string near = nearest(glob, events);
    throw Error(Exit::kUsage,
                {.slug = "no-such-event",
                 .object = "--events " + quoted(glob.substr(0, kMostShown)),
                 .text = "matches none of the " + std::to_string(events.size()) +
                         " events that this trace knows",
                 .at = {},
                 .have = near.empty() ? systems_of(events) : near,
                 .effect = "nothing was written",
                 .fix = "--events " + quoted(near.empty() ? some_system(events)
                                                 : near.substr(0, near.find(',')))});
  }
}

}  // namespace wbscope
