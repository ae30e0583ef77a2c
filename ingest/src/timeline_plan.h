// SPDX-License-Identifier: Apache-2.0
// What is to be drawn and how, as the temporary tables of the set-up script say.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "sink/database.h"
#include "sink/track_tree.h"

namespace wbscope {

// Of the text of a set-up script.
constexpr std::size_t kMaxSetupBytes = 16u << 20;

struct ViewPlan {
  bool is_sorted = false;  // its rows come in the order that TrackTree asks for
  TrackPlan tracks;
};

// Each of these tables may be missing:
//   timeline_group(path, rank, description, is_top)   groups of tracks
//   timeline_view(name, place, track_group, level, is_flat, is_sorted)
//   timeline_track(view, pattern, axis, description)   in the order of its rows
//   timeline_thread(tid, pid, name, process_name)
//   timeline_unit(unit, shown, factor)   how values of a unit are drawn
std::map<std::string, GroupPlan, std::less<>> read_groups(Database& db);
ShownUnits read_units(Database& db);
ViewPlan read_view_plan(Database& db, const std::string& view);
void read_threads(Database& db, TrackTree& tree);

}  // namespace wbscope
