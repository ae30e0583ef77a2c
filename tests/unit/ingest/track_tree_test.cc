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
    TrackTree tree(writer, {{"Writeback", {.rank = 0, .is_top = false, .description = "all"}},
                            {"Writeback/Second", {.rank = 1, .is_top = false, .description = "two"}},
                            {"Writeback/First", {.rank = 0, .is_top = false, .description = "one"}}},
                   {},
                   {{"ns", {"ms", 1e-6}},
                    {"bytes", {"MiB", 0x1p-20}},
                    {"bytes/s", {"MiB/s", 0x1p-20}},
                    {"ratio", {"%", 100}}});
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
  EXPECT_EQ(track_named(out, "limit").unit_name, "MiB");
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
  EXPECT_EQ(out.events[2].value, "0.000005");  // MB
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

TEST(TrackTree, UnitsOfPeople) {
  const Decoded out = drawn([](TrackTree& tree) {
    for (const char* unit : {"ns", "bytes", "bytes/s", "ratio", "count", "pages"}) {
      TrackRow one = row(unit, 1);
      one.track = std::string_view(unit) == "bytes/s" ? "rate" : unit;
      one.unit = unit;
      tree.counter({}, one, std::int64_t{2});
    }
  });
  ASSERT_EQ(out.events.size(), 6u);
  EXPECT_EQ(track_named(out, "ns").unit_name, "ms");
  EXPECT_EQ(out.events[0].value, "0.000002");
  EXPECT_EQ(track_named(out, "rate").unit_name, "MiB/s");
  EXPECT_EQ(out.events[2].value, "0.000002");
  EXPECT_EQ(track_named(out, "ratio").unit_name, "%");
  EXPECT_EQ(out.events[3].value, "200.000000");
  EXPECT_EQ(track_named(out, "count").unit, 2);
  EXPECT_EQ(out.events[4].value, "2");
  EXPECT_EQ(track_named(out, "pages").unit_name, "pages");
}

// The UI draws a group that has data of its own when it is closed, too.
TEST(TrackTree, GroupsHaveDataOfTheirOwn) {
  const Decoded out = drawn([](TrackTree& tree) {
    const TrackPlan plan;
    tree.slice(plan, row("Writeback", 1, 5));
    tree.counter(plan, counted("Writeback/Second", 1), std::int64_t{4});
    tree.counter(plan, counted("Writeback/Second", 2), std::int64_t{6});
    tree.counter(plan, counted("Writeback/Second/x", 1), std::int64_t{4});
    tree.slice(plan, row("Writeback/Second/y", 1, 1));
  });
  ASSERT_EQ(out.tracks.size(), 4u);
  const Track& second = track_named(out, "Second");
  EXPECT_TRUE(second.is_counter);
  EXPECT_EQ(second.description, "two");
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.parent, track_named(out, "Writeback").uuid);
  EXPECT_EQ(track_named(out, "x").parent, second.uuid);
  EXPECT_EQ(track_named(out, "y").parent, second.uuid);
  EXPECT_EQ(out.events[3].track, second.uuid);
}

// Where the group has become a track of slices, a counter of its name is beside it.
TEST(TrackTree, CounterOfAGroupThatHasSlices) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.slice({}, row("Writeback/First/x", 1, 1));
    tree.counter({}, counted("Writeback/First", 2), std::int64_t{3});
  });
  ASSERT_EQ(out.tracks.size(), 4u);
  EXPECT_TRUE(out.tracks[3].is_counter);
  EXPECT_EQ(out.tracks[3].name, "First");
  EXPECT_EQ(out.events.back().track, out.tracks[3].uuid);
}

// The UI shows what stands beside a closed group, and draws what that has itself.
TEST(TrackTree, GroupsBesideThatOfAll) {
  const auto fill = [](TrackTree& tree) {
    tree.slice({}, row("Writeback", 1, 5));
    tree.counter({}, counted("Writeback/First", 1), std::int64_t{4});
    tree.slice({}, row("Writeback/First/x", 1, 1));
    tree.slice({}, row("Writeback/Second/y", 1, 1));
  };
  const std::map<std::string, GroupPlan, std::less<>> groups{
      {"Writeback", {.rank = 0, .is_top = false, .description = "all"}},
      {"Writeback/First", {.rank = 3, .is_top = true, .description = "one"}}};
  const Decoded alone = written("boot", [&](TrackEventWriter& writer) {
    TrackTree tree(writer, groups);
    fill(tree);
  });
  const Track& first = track_named(alone, "First");
  EXPECT_EQ(first.parent, 0u);
  EXPECT_EQ(first.rank, 3);
  EXPECT_TRUE(first.is_counter);
  EXPECT_EQ(track_named(alone, "x").parent, first.uuid);
  EXPECT_EQ(track_named(alone, "Second").parent, track_named(alone, "Writeback").uuid);

  // Beside another run all of a run is below its root.
  const Decoded beside = written("boot", [&](TrackEventWriter& writer) {
    TrackTree tree(writer, groups, {.root = "A: first", .shift_ns = 0, .step_ns = 0});
    fill(tree);
  });
  EXPECT_EQ(track_named(beside, "First").parent, track_named(beside, "A: first").uuid);
}

TEST(TrackTree, CountersThatAreZeroAreLeftOut) {
  const Decoded out = drawn([](TrackTree& tree) {
    tree.counter({}, counted("zero", 1), std::int64_t{0});
    tree.counter({}, counted("zero", 9), 0.0);
    tree.counter({}, counted("late", 1), std::int64_t{0});
    tree.counter({}, counted("late", 2), std::int64_t{0});
    tree.counter({}, counted("late", 7), std::int64_t{3});
    tree.counter({}, counted("late", 8), std::int64_t{0});
  });
  ASSERT_EQ(out.tracks.size(), 1u);
  EXPECT_EQ(out.tracks[0].name, "late");
  ASSERT_EQ(out.events.size(), 3u);
  EXPECT_EQ(out.events[0].ts, 1u);
  EXPECT_EQ(out.events[1].ts, 7u);
  EXPECT_EQ(out.events[2].ts, 8u);
  const Decoded at_once = drawn([](TrackTree& tree) {
    tree.counter({}, counted("c", 5), std::int64_t{0});
    tree.counter({}, counted("c", 5), std::int64_t{3});
  });
  EXPECT_EQ(at_once.events.size(), 1u);
}

TEST(TrackTree, RootOfARunBesideAnother) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    TrackTree tree(writer, {{"Writeback", {.rank = 0, .is_top = false, .description = "all"}}},
                   {.root = "A: first", .shift_ns = -100, .step_ns = 0});
    tree.add_thread(12, {.pid = 10, .name = "a/b", .process_name = "fio"});
    tree.slice({}, row("Writeback/t", 150, 1));
    TrackRow waits = row("waits", 160, 1);
    waits.tid = 12;
    tree.slice({}, waits);
  });
  ASSERT_EQ(out.tracks.size(), 5u);
  EXPECT_EQ(out.tracks[0].name, "A: first");
  EXPECT_EQ(out.tracks[0].description, "all");
  EXPECT_EQ(track_named(out, "Threads").parent, out.tracks[0].uuid);
  EXPECT_EQ(track_named(out, "waits").parent, track_named(out, "a/b 12").uuid);
  for (const Track& track : out.tracks) EXPECT_TRUE(track.of.empty());  // of no process
  EXPECT_EQ(out.events[0].ts, 50u);
  EXPECT_EQ(out.events[2].ts, 60u);
}

// Of many points in a step of time the peaks and the last stay, at their own times.
TEST(TrackTree, ManyPointsAreThinnedOut) {
  constexpr std::int64_t kMany = 100'000, kStep = 1001;
  const auto value_at = [](std::int64_t at) {
    if (at == 67'066) return std::int64_t{500'000};  // the last of its step, too
    return at == 77'777 ? std::int64_t{1'000'000} : at == 88'888 ? std::int64_t{-5} : 10 + at % 7;
  };
  const Decoded out = written("boot", [&](TrackEventWriter& writer) {
    TrackTree tree(writer, {}, {.root = "", .shift_ns = 0, .step_ns = kStep});
    for (std::int64_t at = 0; at < kMany; ++at) {
      TrackRow one = row("c", at);
      one.unit = "count";
      tree.counter({}, one, value_at(at));
    }
    tree.finish();
  });
  EXPECT_LE(out.events.size(), TrackTree::kExactPoints + 4 * (kMany / kStep));
  std::int64_t last_ts = -1;
  std::size_t peaks = 0;
  std::size_t ends = 0;
  for (std::size_t i = 0; i < out.events.size(); ++i) {
    const auto ts = static_cast<std::int64_t>(out.events[i].ts);
    EXPECT_GT(ts, last_ts);
    last_ts = ts;
    EXPECT_EQ(out.events[i].value, std::to_string(value_at(ts)));
    if (i < TrackTree::kExactPoints) {
      EXPECT_EQ(ts, static_cast<std::int64_t>(i));
    }
    ends += ts >= 5 * kStep && ts % kStep == kStep - 1;
    peaks += ts == 67'066 || ts == 77'777 || ts == 88'888;
  }
  EXPECT_EQ(peaks, 3u);
  EXPECT_EQ(ends, 94u);  // of the steps from 5 to 98
  EXPECT_EQ(last_ts, kMany - 1);
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
