// SPDX-License-Identifier: Apache-2.0
// TrackTree: the tracks of a timeline by their paths, and what they draw.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sink/track_event_writer.h"

namespace wbscope {

// What the tracks of a view whose names match a pattern (GLOB) are.
struct TrackRule {
  std::string pattern, axis, description;
};

// What a view says of its tracks. The order of its rules is that of the tracks.
struct TrackPlan {
  std::int32_t order = 0;  // of the view among the views
  std::string group;       // path of the group that they are in
  std::string level;       // description of the groups between that and the tracks
  bool is_flat = false;    // slices that overlap do so side by side, never nested
  std::vector<TrackRule> rules;
};

struct GroupPlan {
  std::int32_t rank = 0;
  bool is_top = false;  // stands beside its parent, which the UI may show closed
  std::string description;
};

// How a unit of values is drawn.
struct ShownUnit {
  std::string name;
  double factor = 1;  // from the unit of the values
};
using ShownUnits = std::map<std::string, ShownUnit, std::less<>>;

struct ThreadPlan {
  std::int64_t pid = 0;
  std::string name, process_name;
};

// One row of a view.
struct TrackRow {
  std::int64_t ts = 0;
  std::optional<std::int64_t> dur;
  std::optional<std::int64_t> tid;  // the track belongs to this thread
  std::optional<std::int64_t> rank;
  std::string_view track, name, unit;
  TrackArguments args;
  TrackEventWriter::Flows flows;
};

// Where a tree is drawn.
struct TreePlacing {
  std::string root;           // instead of the first part of each path; "": as it is
  std::string mark = {};      // stands before the names of the groups below the root
  std::int64_t shift_ns = 0;  // is added to each time
  std::int64_t step_ns = 0;   // of time, for TrackTree::kExactPoints; 0: draw every point
};

class TrackTree {
 public:
  // Slices that overlap and do not nest go on lanes: tracks that the UI shows as
  // one. More of them at one time than this are not drawn but counted.
  static constexpr std::size_t kMostLanes = 256;

  // A counter that has had so many points draws at most four of each step of time
  // from then on: the first, the lowest, the highest and the last.
  static constexpr std::size_t kExactPoints = 4096;

  TrackTree(TrackEventWriter& out, std::map<std::string, GroupPlan, std::less<>> groups,
            TreePlacing placing = {}, ShownUnits units = {})
      : out_(out),
        groups_(std::move(groups)),
        placing_(std::move(placing)),
        units_(std::move(units)) {}

  void add_thread(std::int64_t tid, ThreadPlan thread);

  // Rows of one track come in the order of their times, longer slices first.
  void slice(const TrackPlan& plan, const TrackRow& row);
  void instant(const TrackPlan& plan, const TrackRow& row);
  // A value that a track has already is not written again, and a track that is
  // always 0 is left out. Values are in the view's unit, and drawn in the shown one.
  // A counter on the path of a group is the group's own, if no other track was
  // before it.
  using Value = std::variant<std::int64_t, double>;
  void counter(const TrackPlan& plan, const TrackRow& row, Value value);

  // Writes what is waiting.
  void finish();

  [[nodiscard]] std::uint64_t slices_left_out() const noexcept { return slices_left_out_; }

 private:
  struct Lane {
    std::uint64_t uuid = 0;
    std::vector<std::int64_t> open_until;  // ends of the slices that are open, outermost first
  };
  struct Point {
    std::int64_t ts = 0;
    Value value;
  };
  struct Track {
    TrackDescription description;
    std::vector<Lane> lanes;  // the first is the track itself
    // Of a counter:
    double factor = 1;  // from the view's unit to the shown one
    std::optional<Value> last;
    std::int64_t last_ts = INT64_MIN;
    std::size_t points_count = 0;
    std::int64_t step = INT64_MIN;  // the one that waiting is of
    std::vector<Point> waiting;     // lowest, highest and last, if they are not the first
  };
  using Tracks = std::unordered_map<std::string, Track, StringHash, std::equal_to<>>;
  struct Thread {
    ThreadPlan plan;
    std::uint64_t uuid = 0;
    Tracks tracks;
  };

  [[nodiscard]] ShownUnit shown_unit(std::string_view unit) const;
  Track& find(const TrackPlan& plan, const TrackRow& row, bool is_counter);
  Track& make(const TrackPlan& plan, const TrackRow& row, bool is_counter, std::uint64_t top,
              Tracks& tracks);
  TrackDescription describe(const TrackPlan& plan, const TrackRow& row, std::string_view path,
                            std::string_view part, bool is_leaf, bool is_counter);
  std::uint64_t process(std::int64_t pid, std::string_view name);
  Track* known(const TrackRow& row, bool is_counter);
  TrackRow placed(const TrackRow& row, std::string& path) const;
  void add_point(Track& track, const Point& point);
  static void thin(std::vector<Point>& points);
  void draw(Track& track, const Point& point);
  void draw_waiting(Track& track);
  Lane* free_lane(Track& track, std::int64_t ts, std::int64_t end_ts, bool is_flat);

  TrackEventWriter& out_;
  std::map<std::string, GroupPlan, std::less<>> groups_;
  std::unordered_map<std::int64_t, Thread> threads_;
  std::map<std::int64_t, std::uint64_t> processes_;
  // A path can be of a track and of a counter: these are two.
  Tracks tracks_, counters_;
  // Counters that were 0 so far, by path and thread, and since when.
  std::map<std::pair<std::int64_t, std::string>, std::int64_t, std::less<>> zeros_;
  TreePlacing placing_;
  ShownUnits units_;
  std::uint64_t slices_left_out_ = 0;
};

}  // namespace wbscope
