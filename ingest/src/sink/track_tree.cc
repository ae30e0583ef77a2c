// SPDX-License-Identifier: Apache-2.0
// TrackTree: the tracks of a timeline by their paths, and what they draw.
#include "sink/track_tree.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace wbscope {
namespace {

// Ranks are made of the view, of the rule in it and of what the row says.
constexpr std::int64_t kRules = 64, kPlaces = 100'000;

// Where the part that starts at from ends: at a '/' that has no '\' before it.
std::size_t part_end(std::string_view path, std::size_t from) {
  for (std::size_t i = from; i < path.size(); ++i) {
    if (path[i] == '\\') {
      ++i;
    } else if (path[i] == '/') {
      return i;
    }
  }
  return path.size();
}

std::string unescaped(std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\' && i + 1 < part.size()) ++i;
    out += part[i];
  }
  return out;
}

bool matches(const std::string& pattern, const std::string& name) {
  return sqlite3_strglob(pattern.c_str(), name.c_str()) == 0;
}

std::int32_t rank_of(std::int64_t view, std::int64_t rule, std::int64_t place) {
  const std::int64_t rank = (view * kRules + std::min(rule, kRules - 1)) * kPlaces +
                            std::clamp(place, std::int64_t{0}, kPlaces - 1);
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(rank, std::numeric_limits<std::int32_t>::max()));
}

double number(const TrackTree::Value& value) {
  return std::visit([](auto n) { return static_cast<double>(n); }, value);
}

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '/' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// A length that a slice can have: not negative, and not behind the end of time.
std::int64_t length_of(const TrackRow& row) {
  const std::int64_t wanted = std::max(row.dur.value_or(0), std::int64_t{0});
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  return row.ts > 0 ? std::min(wanted, kLast - row.ts) : wanted;
}

}  // namespace

void TrackTree::add_thread(std::int64_t tid, ThreadPlan thread) {
  threads_[tid].plan = std::move(thread);
}

std::uint64_t TrackTree::process(std::int64_t pid, std::string_view name) {
  auto [found, is_new] = processes_.try_emplace(pid, 0);
  if (is_new) found->second = out_.add_process(pid, name);
  return found->second;
}

// The track of a row, if there is one.
TrackTree::Track* TrackTree::known(const TrackRow& row, bool is_counter) {
  if (row.tid) {
    const auto thread = threads_.find(*row.tid);
    if (thread == threads_.end()) return nullptr;
    const auto found = thread->second.tracks.find(row.track);
    return found == thread->second.tracks.end() ? nullptr : &found->second;
  }
  Tracks& tracks = is_counter ? counters_ : tracks_;
  if (const auto found = tracks.find(row.track); found != tracks.end()) return &found->second;
  if (!is_counter || !groups_.contains(row.track)) return nullptr;
  const auto group = tracks_.find(row.track);
  const bool is_own = group != tracks_.end() && group->second.description.unit;
  return is_own ? &group->second : nullptr;
}

ShownUnit TrackTree::shown_unit(std::string_view unit) const {
  const auto found = units_.find(unit);
  return found == units_.end() ? ShownUnit{.name = std::string(unit), .factor = 1} : found->second;
}

TrackTree::Track& TrackTree::find(const TrackPlan& plan, const TrackRow& row, bool is_counter) {
  if (Track* track = known(row, is_counter)) return *track;
  if (!row.tid) return make(plan, row, is_counter, 0, tracks_);
  Thread& thread = threads_[*row.tid];
  if (thread.uuid == 0) {
    if (thread.plan.pid == 0) thread.plan.pid = *row.tid;
    process(thread.plan.pid, thread.plan.process_name);
    thread.uuid = out_.add_thread(thread.plan.pid, *row.tid, thread.plan.name);
  }
  return make(plan, row, is_counter, thread.uuid, thread.tracks);
}

TrackTree::Track& TrackTree::make(const TrackPlan& plan, const TrackRow& row, bool is_counter,
                                  std::uint64_t top, Tracks& tracks) {
  std::uint64_t parent = top;
  std::size_t from = 0;
  while (true) {
    const std::size_t end = part_end(row.track, from);
    const bool is_leaf = end == row.track.size();
    const std::string_view path = row.track.substr(0, end);
    const bool is_group = top == 0 && groups_.contains(path) && !tracks.contains(path);
    Tracks& level = is_leaf && is_counter && top == 0 && !is_group ? counters_ : tracks;
    const auto found = level.find(path);
    if (found != level.end()) {
      if (is_leaf) return found->second;
      parent = found->second.lanes.front().uuid;
    } else {
      Track track;
      track.description =
          describe(plan, row, path, row.track.substr(from, end - from), is_leaf, is_counter);
      if (is_leaf && is_counter) track.factor = shown_unit(row.unit).factor;
      if (from == 0 && top == 0 && !placing_.root.empty()) track.description.name = placing_.root;
      const auto group = groups_.find(path);
      // A UI shows what is pinned without its parents.
      if (from != 0 && group != groups_.end() && !placing_.mark.empty()) {
        track.description.name = placing_.mark + " " + track.description.name;
      }
      const bool is_top =
          top == 0 && placing_.root.empty() && group != groups_.end() && group->second.is_top;
      track.description.parent = is_top ? 0 : parent;
      parent = out_.add_track(track.description);
      track.lanes.push_back({.uuid = parent, .open_until = {}});
      Track& made = level.emplace(std::string(path), std::move(track)).first->second;
      if (is_leaf) return made;
    }
    from = end + 1;
  }
}

TrackDescription TrackTree::describe(const TrackPlan& plan, const TrackRow& row,
                                     std::string_view path, std::string_view part, bool is_leaf,
                                     bool is_counter) {
  TrackDescription out;
  out.name = unescaped(part);
  if (is_leaf && is_counter) out.unit = shown_unit(row.unit).name;
  if (is_leaf && !is_counter) out.same_track = TrackDescription::kItself;
  // Before other tracks of the view come the groups in it.
  std::int64_t rule_at = 0;
  if (is_leaf) {
    const auto rule = std::find_if(plan.rules.begin(), plan.rules.end(),
                                   [&](const TrackRule& r) { return matches(r.pattern, out.name); });
    rule_at = rule - plan.rules.begin() + 1;
    if (rule != plan.rules.end()) {
      out.axis = rule->axis;
      out.description = rule->description;
    }
  } else {
    out.description = plan.level;
  }
  const auto come_first = static_cast<std::int64_t>(tracks_.size() + counters_.size());
  out.rank = rank_of(plan.order, rule_at, row.rank.value_or(come_first));
  if (const auto group = groups_.find(path); group != groups_.end()) {
    out.rank = group->second.rank;
    if (!is_leaf || out.description.empty()) out.description = group->second.description;
  }
  return out;
}

// The first lane in which the slice overlaps no other, or lies within others.
TrackTree::Lane* TrackTree::free_lane(Track& track, std::int64_t ts, std::int64_t end_ts,
                                      bool is_flat) {
  for (Lane& lane : track.lanes) {
    auto& open = lane.open_until;
    while (!open.empty() && open.back() <= ts) open.pop_back();
    if (open.empty() || (!is_flat && end_ts <= open.back())) return &lane;
  }
  if (track.lanes.size() == kMostLanes) return nullptr;
  TrackDescription& description = track.description;
  description.same_track = track.lanes.front().uuid;
  track.lanes.push_back({.uuid = out_.add_track(description), .open_until = {}});
  return &track.lanes.back();
}

// The row at its place: below the root that it is given, and moved in time. With
// a root, the tracks of threads are below it, too.
TrackRow TrackTree::placed(const TrackRow& row, std::string& path) const {
  TrackRow out = row;
  out.ts = static_cast<std::int64_t>(static_cast<std::uint64_t>(row.ts) +
                                     static_cast<std::uint64_t>(placing_.shift_ns));
  if (placing_.root.empty() || !row.tid) return out;
  path = (groups_.empty() ? std::string() : groups_.begin()->first + "/") + "Threads/";
  if (const auto thread = threads_.find(*row.tid); thread != threads_.end()) {
    path += escaped(thread->second.plan.name) + " ";
  }
  path += std::to_string(*row.tid) + "/";
  path += row.track;
  out.track = path;
  out.tid.reset();
  return out;
}

void TrackTree::slice(const TrackPlan& plan, const TrackRow& given) {
  std::string path;
  const TrackRow row = placed(given, path);
  Track& track = find(plan, row, false);
  const std::int64_t dur = length_of(row);
  const std::int64_t end_ts = row.ts + dur;
  Lane* lane = free_lane(track, row.ts, end_ts, plan.is_flat);
  if (lane == nullptr) {
    ++slices_left_out_;
    return;
  }
  lane->open_until.push_back(end_ts);
  out_.slice(lane->uuid, row.ts, dur, row.name, row.args, row.flows);
}

void TrackTree::instant(const TrackPlan& plan, const TrackRow& given) {
  std::string path;
  const TrackRow row = placed(given, path);
  Track& track = find(plan, row, false);
  out_.instant(track.lanes.front().uuid, row.ts, row.name, row.args);
}

void TrackTree::counter(const TrackPlan& plan, const TrackRow& given, Value value) {
  std::string path;
  const TrackRow row = placed(given, path);
  Track* track = known(row, true);
  if (track == nullptr) {
    const auto key = std::pair(row.tid.value_or(-1), std::string(row.track));
    const auto zero = zeros_.find(key);
    if (number(value) == 0) {
      if (zero == zeros_.end()) zeros_.emplace(key, row.ts);
      return;
    }
    track = &find(plan, row, true);
    if (zero != zeros_.end()) {
      if (zero->second < row.ts) add_point(*track, {.ts = zero->second, .value = std::int64_t{0}});
      zeros_.erase(zero);
    }
  }
  add_point(*track, {.ts = row.ts, .value = value});
}

void TrackTree::add_point(Track& track, const Point& point) {
  if (point.ts < track.last_ts) {
    // Of a trace whose times go back: what was left out may be missed now.
    draw_waiting(track);
    draw(track, point);
    if (track.last) draw(track, {.ts = track.last_ts, .value = *track.last});
    return;
  }
  track.last_ts = point.ts;
  if (track.last == point.value) return;
  track.last = point.value;
  if (placing_.step_ns <= 0 || track.points_count < kExactPoints) {
    draw(track, point);
    return;
  }
  const std::int64_t step = point.ts / placing_.step_ns;
  if (step != track.step) {
    draw_waiting(track);
    track.step = step;
    draw(track, point);
    return;
  }
  track.waiting.push_back(point);
  constexpr std::size_t kMost = 3;
  if (track.waiting.size() > kMost) thin(track.waiting);
}

// Keeps the lowest, the highest and the last.
void TrackTree::thin(std::vector<Point>& points) {
  const auto less = [](const Point& a, const Point& b) { return number(a.value) < number(b.value); };
  const auto [lowest, highest] = std::minmax_element(points.begin(), points.end(), less);
  std::vector<Point> kept{*std::min(lowest, highest)};
  if (lowest != highest) kept.push_back(*std::max(lowest, highest));
  if (kept.back().ts < points.back().ts) kept.push_back(points.back());
  points = std::move(kept);
}

void TrackTree::draw_waiting(Track& track) {
  for (const Point& point : track.waiting) draw(track, point);
  track.waiting.clear();
}

void TrackTree::draw(Track& track, const Point& point) {
  ++track.points_count;
  const std::uint64_t uuid = track.lanes.front().uuid;
  if (const auto* whole = std::get_if<std::int64_t>(&point.value); whole && track.factor == 1) {
    out_.counter(uuid, point.ts, *whole);
  } else {
    out_.counter(uuid, point.ts, number(point.value) * track.factor);
  }
}

void TrackTree::finish() {
  for (auto& [path, track] : counters_) draw_waiting(track);
  for (auto& [path, track] : tracks_) draw_waiting(track);
  for (auto& [tid, thread] : threads_) {
    for (auto& [path, track] : thread.tracks) draw_waiting(track);
  }
}

}  // namespace wbscope
