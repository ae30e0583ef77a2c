// SPDX-License-Identifier: Apache-2.0
// What is to be drawn and how, as the temporary tables of the set-up script say.
#include "timeline_plan.h"

#include <utility>

namespace wbscope {
namespace {

bool has_table(Database& db, std::string_view name) {
  Statement rows(db, "SELECT 1 FROM temp.sqlite_schema WHERE name = ?");
  rows.bind_text(1, name);
  return rows.step();
}

std::string text(const Statement& rows, int column) { return std::string(rows.text(column)); }

}  // namespace

std::map<std::string, GroupPlan, std::less<>> read_groups(Database& db) {
  std::map<std::string, GroupPlan, std::less<>> out;
  if (!has_table(db, "timeline_group")) return out;
  Statement rows(db, "SELECT path, rank, description, is_top FROM temp.timeline_group");
  while (rows.step()) {
    out[text(rows, 0)] = {.rank = static_cast<std::int32_t>(rows.integer(1)),
                          .is_top = rows.integer(3) != 0,
                          .description = text(rows, 2)};
  }
  return out;
}

ShownUnits read_units(Database& db) {
  ShownUnits out;
  if (!has_table(db, "timeline_unit")) return out;
  Statement rows(db, "SELECT unit, shown, factor FROM temp.timeline_unit");
  while (rows.step()) out[text(rows, 0)] = {.name = text(rows, 1), .factor = rows.real(2)};
  return out;
}

ViewPlan read_view_plan(Database& db, const std::string& view) {
  ViewPlan out;
  if (has_table(db, "timeline_view")) {
    Statement rows(db,
                   "SELECT place, track_group, level, is_flat, is_sorted "
                   "FROM temp.timeline_view WHERE name = ?");
    rows.bind_text(1, view);
    if (rows.step()) {
      out.tracks.order = static_cast<std::int32_t>(rows.integer(0));
      out.tracks.group = text(rows, 1);
      out.tracks.level = text(rows, 2);
      out.tracks.is_flat = rows.integer(3) != 0;
      out.is_sorted = rows.integer(4) != 0;
    }
  }
  if (has_table(db, "timeline_track")) {
    Statement rows(db,
                   "SELECT pattern, axis, description FROM temp.timeline_track "
                   "WHERE view = ? ORDER BY rowid");
    rows.bind_text(1, view);
    while (rows.step()) {
      out.tracks.rules.push_back(
          {.pattern = text(rows, 0), .axis = text(rows, 1), .description = text(rows, 2)});
    }
  }
  return out;
}

void read_threads(Database& db, TrackTree& tree) {
  if (!has_table(db, "timeline_thread")) return;
  Statement rows(db, "SELECT tid, pid, name, process_name FROM temp.timeline_thread");
  while (rows.step()) {
    tree.add_thread(rows.integer(0), {.pid = rows.integer(1),
                                      .name = text(rows, 2),
                                      .process_name = text(rows, 3)});
  }
}

}  // namespace wbscope
