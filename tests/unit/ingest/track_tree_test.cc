// SPDX-License-Identifier: Apache-2.0
// TrackTree: which tracks it makes, and what goes on them.
#include "sink/track_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decoded_trace.h"

namespace wbscope {
namespace {

using testing::Decoded;
using testing::Track;
using testing::written;

// What a tree of tracks writes.
template <typename Fill>
Decoded drawn(Fill fill) {
  return written("boot", [&](TrackEventWriter& writer) {
    TrackTree tree(writer, {{"Writeback", {.rank = 0, .description = "all"}},
                            {"Writeback/Second", {.rank = 1, .description = "two"}},
                            {"Writeback/First", {.rank = 0, .description = "one"}}});
    fill(tree);
  });
}

const Track& track_named(const Decoded& out, const std::string& name) {
  const auto found = std::find_if(out.tracks.begin(), out.tracks.end(),
                                  [&](const Track& track) { return track.name == name; });
  EXPECT_NE(found, out.tracks.end()) << name;
  return found == out.tracks.end() ? out.tracks.front() : *found;
}

TrackRow row(std::string_view track, std::int64_t ts, std::optional<std::int64_t> dur = {}) {
  TrackRow out;
  out.ts = ts;
  out.dur = dur;
  out.track = track;
  out.name = "s";
  return out;
}

TrackRow counted(std::string_view track, std::int64_t ts) {
  TrackRow out = row(track, ts);
  out.unit = "bytes";
  return out;
}

TEST(TrackTree, TracksHaveTheirParents) {
  const Decoded out = drawn([](TrackTree& tree) {
    const TrackPlan plan{.order = 3, .group = {}, .level = "a level", .is_flat = false, .rules = {}};
    tree.slice(plan, row("Writeback/Second/dd/waits", 10, 1));
    tree.slice(plan, row("Writeback/Second/dd/waits", 20, 1));
    tree.slice(plan, row("Writeback/First/x", 5, 1));
  });
  ASSERT_EQ(out.tracks.size(), 6u);
  const Track& top = track_named(out, "Writeback");
  const Track& second = track_named(out, "Second");
  const Track& dd = track_named(out, "dd");
  EXPECT_EQ(top.parent, 0u);
  EXPECT_EQ(top.description, "all");
  EXPECT_EQ(second.parent, top.uuid);
  EXPECT_EQ(second.description, "two");
  EXPECT_EQ(dd.parent, second.uuid);
  EXPECT_EQ(dd.description, "a level");
  EXPECT_EQ(track_named(out, "waits").parent, dd.uuid);
  // Groups are in the order that is stated, not in that of their first slices.
  EXPECT_LT(track_named(out, "First").rank, second.rank);
  for (const Track& track : out.tracks) EXPECT_TRUE(track.is_explicit);
}

TEST(TrackTree, EscapedNames) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.slice({}, row(R"(Tasks/kworker\/u8:2/back\\slash\\/last\)", 1, 1));
  });
  ASSERT_EQ(out.tracks.size(), 4u);
  EXPECT_EQ(out.tracks[1].name, "kworker/u8:2");
  EXPECT_EQ(out.tracks[2].name, R"(back\slash\)");
  EXPECT_EQ(out.tracks[3].name, R"(last\)");
}

TEST(TrackTree, RulesByName) {
  const TrackPlan plan{.order = 0,
                       .group = {},
                       .level = {},
                       .is_flat = false,
                       .rules = {{.pattern = "limit", .axis = "b", .description = "the limit"},
                                 {.pattern = "of *", .axis = "", .description = "of a task"}}};
  const Decoded out = drawn([&](TrackTree& tree) {
    TrackRow late = counted("of dd", 1);
    late.rank = 5;
    tree.counter(plan, late, std::int64_t{1});
    TrackRow early = counted("of ab", 2);
    early.rank = 0;
    tree.counter(plan, early, std::int64_t{1});
    tree.counter(plan, counted("limit", 3), std::int64_t{1});
    tree.counter(plan, counted("none", 3), std::int64_t{1});
  });
  EXPECT_EQ(track_named(out, "limit").share_key, "b");
  EXPECT_EQ(track_named(out, "limit").description, "the limit");
  EXPECT_EQ(track_named(out, "limit").unit, 3);
  EXPECT_EQ(track_named(out, "of dd").share_key, "");
  EXPECT_EQ(track_named(out, "of dd").description, "of a task");
  EXPECT_EQ(track_named(out, "none").description, "");
  // The order of the rules, in one rule that of the row's rank.
  EXPECT_LT(track_named(out, "limit").rank, track_named(out, "of ab").rank);
  EXPECT_LT(track_named(out, "of ab").rank, track_named(out, "of dd").rank);
  EXPECT_LT(track_named(out, "of dd").rank, track_named(out, "none").rank);
}

TEST(TrackTree, NestedSlicesStayOnOneTrack) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.slice({}, row("t", 0, 100));
    tree.slice({}, row("t", 0, 50));
    tree.slice({}, row("t", 50, 50));
    tree.slice({}, row("t", 100, 5));
    tree.slice({}, row("t", 100, 0));
  });
  ASSERT_EQ(out.tracks.size(), 1u);
  EXPECT_EQ(out.tracks[0].merge, 3);
  EXPECT_EQ(out.tracks[0].merge_key, out.tracks[0].uuid);
}

TEST(TrackTree, OverlappingSlicesGetLanes) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.slice({}, row("t", 0, 10));
    tree.slice({}, row("t", 5, 10));  // reaches over the first one's end
    tree.slice({}, row("t", 10, 1));  // the first lane is free again
  });
  ASSERT_EQ(out.tracks.size(), 2u);
  EXPECT_EQ(out.tracks[1].name, out.tracks[0].name);
  EXPECT_EQ(out.tracks[1].rank, out.tracks[0].rank);
  EXPECT_EQ(out.tracks[1].merge_key, out.tracks[0].uuid);
  ASSERT_EQ(out.events.size(), 6u);
  EXPECT_EQ(out.events[2].track, out.tracks[1].uuid);
  EXPECT_EQ(out.events[4].track, out.tracks[0].uuid);
}

TEST(TrackTree, FlatSlicesDoNotNest) {
  const TrackPlan flat{.order = 0, .group = {}, .level = {}, .is_flat = true, .rules = {}};
  const Decoded out = drawn([&](TrackTree& tree) {
    tree.slice(flat, row("t", 0, 10));
    tree.slice(flat, row("t", 2, 3));
  });
  EXPECT_EQ(out.tracks.size(), 2u);
}

TEST(TrackTree, LanesHaveALimit) {
  std::uint64_t left_out = 0;
  const Decoded out = drawn([&](TrackTree& tree) {
    const TrackPlan flat{.order = 0, .group = {}, .level = {}, .is_flat = true, .rules = {}};
    for (std::int64_t i = 0; i < 300; ++i) tree.slice(flat, row("t", i, 1000));
    left_out = tree.slices_left_out();
  });
  EXPECT_EQ(out.tracks.size(), TrackTree::kMostLanes);
  EXPECT_EQ(left_out, 300 - TrackTree::kMostLanes);
}

TEST(TrackTree, CountersWriteWhatIsNew) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.counter({}, counted("c", 1), std::int64_t{5});
    tree.counter({}, counted("c", 2), std::int64_t{5});
    tree.counter({}, counted("c", 3), 5.0);  // another kind of number
    tree.counter({}, counted("c", 4), std::int64_t{6});
    tree.counter({}, counted("d", 4), std::int64_t{6});
  });
  ASSERT_EQ(out.events.size(), 4u);
  EXPECT_EQ(out.events[1].ts, 3u);
  EXPECT_EQ(out.events[2].ts, 4u);
}

TEST(TrackTree, CounterWhoseTimesGoBack) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.counter({}, counted("c", 10), std::int64_t{5});
    tree.counter({}, counted("c", 30), std::int64_t{5});
    tree.counter({}, counted("c", 20), std::int64_t{7});
  });
  ASSERT_EQ(out.events.size(), 3u);
  EXPECT_EQ(out.events[1].ts, 20u);
  EXPECT_EQ(out.events[2].ts, 30u);  // it was left out, and is needed now
  EXPECT_EQ(out.events[2].value, "5");
}

TEST(TrackTree, PathOfATrackAndOfACounter) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.slice({}, row("a", 1, 1));
    tree.counter({}, counted("a", 1), std::int64_t{1});
    tree.slice({}, row("a/b", 1, 1));
  });
  ASSERT_EQ(out.tracks.size(), 3u);
  EXPECT_FALSE(out.tracks[0].is_counter);
  EXPECT_TRUE(out.tracks[1].is_counter);
  EXPECT_EQ(out.tracks[2].parent, out.tracks[0].uuid);
}

TEST(TrackTree, TracksOfThreads) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.add_thread(12, {.pid = 10, .name = "worker", .process_name = "fio"});
    for (const std::int64_t tid : {12, 12, 99}) {
      TrackRow waits = row("waits", 5, 1);
      waits.tid = tid;
      tree.slice({}, waits);
    }
  });
  // Process, thread and track of each; the lane of the second slice is inside.
  ASSERT_EQ(out.tracks.size(), 6u);
  EXPECT_EQ(out.tracks[0].of, (std::map<std::string, std::string>{{"pid", "10"}, {"process", "fio"}}));
  EXPECT_EQ(out.tracks[1].of, (std::map<std::string, std::string>{
                                  {"pid", "10"}, {"tid", "12"}, {"thread", "worker"}}));
  EXPECT_EQ(out.tracks[2].name, "waits");
  EXPECT_EQ(out.tracks[2].parent, out.tracks[1].uuid);
  // Nothing is known of the other one: a process of its own.
  EXPECT_EQ(out.tracks[4].of, (std::map<std::string, std::string>{{"pid", "99"}, {"tid", "99"}}));
}

// Times of a hostile trace must not overflow (UBSan watches).
TEST(TrackTree, SliceAtTheEndOfTime) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.slice({}, row("t", INT64_MAX, INT64_MAX));
    tree.slice({}, row("t", INT64_MIN, INT64_MIN));
  });
  EXPECT_EQ(out.events.size(), 4u);
}

}  // namespace
}  // namespace wbscope
