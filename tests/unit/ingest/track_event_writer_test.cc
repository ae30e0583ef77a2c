// SPDX-License-Identifier: Apache-2.0
// TrackEventWriter and TrackTree: what they wrote, decoded with protozero's reader. Field
// numbers: protos/perfetto/trace of Perfetto.
#include "sink/track_event_writer.h"

#include "sink/track_tree.h"

#include <gtest/gtest.h>

#include <zlib.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "support.h"

namespace wbscope {
namespace {

using protozero::pbf_reader;
using testing::TempDir;

using Clocks = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

struct Track {
  std::uint64_t uuid = 0, parent = 0;
  std::string name, unit_name, share_key, description;
  bool is_counter = false, is_explicit = false;
  int unit = 0, rank = -1, merge = 0;
  std::uint64_t merge_key = 0;
  std::map<std::string, std::string> of;  // pid, tid, names of a process or thread
};

struct Arg {
  std::string name, type, value;
  friend bool operator==(const Arg&, const Arg&) = default;
  friend void PrintTo(const Arg& arg, std::ostream* out) {
    *out << arg.name << " " << arg.type << " " << arg.value;
  }
};

struct Event {
  std::uint64_t ts = 0, track = 0;
  int type = 0;
  std::string name, value;
  std::vector<Arg> args;
  std::vector<std::uint64_t> flows;
};

// A whole trace, names in place of their ids.
struct Decoded {
  std::vector<Track> tracks;
  std::vector<Event> events;
  Clocks clocks;
  std::uint32_t primary_clock = 0, default_clock = 0;
  std::map<std::uint64_t, std::string> event_names, arg_names, texts;
};

std::string message(pbf_reader& in) {
  const auto view = in.get_view();
  return {view.data(), view.size()};
}

void decode_clocks(pbf_reader in, Decoded& out) {
  while (in.next()) {
    if (in.tag() == 2) out.primary_clock = in.get_uint32();
    if (in.tag() != 1) continue;
    pbf_reader clock = in.get_message();
    auto& entry = out.clocks.emplace_back();
    while (clock.next()) {
      if (clock.tag() == 1) entry.first = clock.get_uint32();
      if (clock.tag() == 2) entry.second = clock.get_uint64();
    }
  }
}

void decode_counter(pbf_reader in, Track& track) {
  track.is_counter = true;
  while (in.next()) {
    if (in.tag() == 3) track.unit = in.get_enum();
    else if (in.tag() == 6) track.unit_name = message(in);
    else if (in.tag() == 7) track.share_key = message(in);
    else in.skip();
  }
}

void decode_owner(pbf_reader in, Track& track) {
  while (in.next()) {
    if (in.tag() == 1) track.of["pid"] = std::to_string(in.get_int32());
    else if (in.tag() == 2) track.of["tid"] = std::to_string(in.get_int32());
    else if (in.tag() == 5) track.of["thread"] = message(in);
    else if (in.tag() == 6) track.of["process"] = message(in);
    else in.skip();
  }
}

void decode_track(pbf_reader in, Decoded& out) {
  Track& track = out.tracks.emplace_back();
  while (in.next()) {
    if (in.tag() == 1) track.uuid = in.get_uint64();
    else if (in.tag() == 2) track.name = message(in);
    else if (in.tag() == 5) track.parent = in.get_uint64();
    else if (in.tag() == 8) decode_counter(in.get_message(), track);
    else if (in.tag() == 11) track.is_explicit = in.get_enum() == 3;
    else if (in.tag() == 12) track.rank = in.get_int32();
    else if (in.tag() == 14) track.description = message(in);
    else if (in.tag() == 15) track.merge = in.get_enum();
    else if (in.tag() == 17) track.merge_key = in.get_uint64();
    else if (in.tag() == 3 || in.tag() == 4) decode_owner(in.get_message(), track);
    else in.skip();
  }
}

void decode_names(pbf_reader in, Decoded& out) {
  while (in.next()) {
    auto& names = in.tag() == 2 ? out.event_names : in.tag() == 3 ? out.arg_names : out.texts;
    pbf_reader entry = in.get_message();
    std::uint64_t iid = 0;
    while (entry.next()) {
      if (entry.tag() == 1) iid = entry.get_uint64();
      else names[iid] = message(entry);
    }
  }
}

Arg decode_arg(pbf_reader in, const Decoded& out) {
  Arg arg;
  while (in.next()) {
    if (in.tag() == 1) arg.name = out.arg_names.at(in.get_uint64());
    else if (in.tag() == 4) arg.type = "int", arg.value = std::to_string(in.get_int64());
    else if (in.tag() == 5) arg.type = "double", arg.value = std::to_string(in.get_double());
    else if (in.tag() == 17) arg.type = "string", arg.value = out.texts.at(in.get_uint64());
    else in.skip();
  }
  return arg;
}

void decode_event(pbf_reader in, std::uint64_t ts, Decoded& out) {
  Event& event = out.events.emplace_back();
  event.ts = ts;
  while (in.next()) {
    if (in.tag() == 9) event.type = in.get_enum();
    else if (in.tag() == 11) event.track = in.get_uint64();
    else if (in.tag() == 10) event.name = out.event_names.at(in.get_uint64());
    else if (in.tag() == 4) event.args.push_back(decode_arg(in.get_message(), out));
    else if (in.tag() == 30) event.value = std::to_string(in.get_int64());
    else if (in.tag() == 47) event.flows.push_back(in.get_fixed64());
    else if (in.tag() == 44) event.value = std::to_string(in.get_double());
    else in.skip();
  }
}

void decode_packet(pbf_reader in, Decoded& out) {
  std::uint64_t ts = 0;
  while (in.next()) {
    if (in.tag() == 6) decode_clocks(in.get_message(), out);
    else if (in.tag() == 8) ts = in.get_uint64();
    else if (in.tag() == 60) decode_track(in.get_message(), out);
    else if (in.tag() == 12) decode_names(in.get_message(), out);
    else if (in.tag() == 11) decode_event(in.get_message(), ts, out);
    else if (in.tag() == 59) {
      pbf_reader defaults = in.get_message();
      while (defaults.next()) {
        if (defaults.tag() == 58) out.default_clock = defaults.get_uint32();
        else defaults.skip();
      }
    } else {
      in.skip();
    }
  }
}

// The packets of a trace, those that are compressed too.
void decode_trace(const std::string& bytes, Decoded& out) {
  pbf_reader in(bytes);
  while (in.next()) {
    EXPECT_EQ(in.tag(), 1u);
    pbf_reader packet = in.get_message();
    pbf_reader whole = packet;
    if (packet.next() && packet.tag() == 50) {
      const std::string packed = message(packet);
      std::string plain(16 << 20, '\0');
      uLongf size = plain.size();
      ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(plain.data()), &size,
                           reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
                Z_OK);
      plain.resize(size);
      decode_trace(plain, out);
    } else {
      decode_packet(whole, out);
    }
  }
}

template <typename Fill>
Decoded written(const char* clock, Fill fill) {
  const TempDir dir;
  TrackEventWriter writer(dir.path("x.pftrace"), "x.pftrace", clock, 12345);
  fill(writer);
  writer.finish();
  const std::string bytes = testing::read_file(dir.path("x.pftrace"));
  Decoded out;
  decode_trace(bytes, out);
  return out;
}

std::uint64_t plain(TrackEventWriter& out, const std::string& name) {
  return out.add_track({.name = name, .description = {}, .unit = {}, .axis = {}});
}

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

TEST(TrackEventWriter, ClocksThatPerfettoKnows) {
  const std::pair<const char*, std::uint32_t> known[] = {{"boot", 6}, {"mono", 3}, {"mono_raw", 5}};
  for (const auto& [name, id] : known) {
    const Decoded out = written(name, [](TrackEventWriter&) {});
    EXPECT_EQ(out.clocks, (Clocks{{id, 12345}}));
    EXPECT_EQ(out.primary_clock, id);
    EXPECT_EQ(out.default_clock, id);
  }
}

TEST(TrackEventWriter, OtherClocksRunLikeBoottime) {
  for (const char* name : {"local", "global", "x86-tsc", ""}) {
    const Decoded out = written(name, [](TrackEventWriter&) {});
    EXPECT_EQ(out.clocks, (Clocks{{128, 12345}, {6, 12345}}));
    EXPECT_EQ(out.default_clock, 128u);
  }
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
    tree.counter(plan, counted("of dd", 1), std::int64_t{1});
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

TEST(TrackEventWriter, ArgsByTheirType) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    writer.instant(plain(writer, "t"), 5, "i",
                   R"(n=-7|r=0.5|s=8:16|big=9223372036854775808|empty=|none|x=a=b|comm="7"|)"
                   R"(bar="a\|b\\"|inf=inf|no="")");
  });
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].args, (std::vector<Arg>{{"n", "int", "-7"},
                                                  {"r", "double", "0.500000"},
                                                  {"s", "string", "8:16"},
                                                  {"big", "double", "9223372036854775808.000000"},
                                                  {"x", "string", "a=b"},
                                                  {"comm", "string", "7"},
                                                  {"bar", "string", R"(a|b\)"},
                                                  {"inf", "string", "inf"},
                                                  {"no", "string", ""}}));
}

TEST(TrackEventWriter, SlicesInstantsAndCounters) {
  std::uint64_t track = 0;
  const Decoded out = written("boot", [&](TrackEventWriter& writer) {
    track = plain(writer, "t");
    writer.slice(track, 100, 20, "pause", "a=1", std::vector<std::uint64_t>{7, 8});
    writer.counter(track, 130, std::int64_t{-5});
    writer.counter(track, 140, 0.25);
    writer.instant(track, 150, "pause", "a=2");
  });
  ASSERT_EQ(out.events.size(), 5u);
  EXPECT_EQ(out.events[0].type, 1);
  EXPECT_EQ(out.events[0].name, "pause");
  EXPECT_EQ(out.events[0].flows, (std::vector<std::uint64_t>{7, 8}));
  EXPECT_EQ(out.events[1].type, 2);
  EXPECT_EQ(out.events[1].ts, 120u);
  EXPECT_EQ(out.events[2].type, 4);
  EXPECT_EQ(out.events[2].value, "-5");
  EXPECT_EQ(out.events[3].value, "0.250000");
  EXPECT_EQ(out.events[4].type, 3);
  EXPECT_EQ(out.events[4].name, "pause");
  for (const auto& event : out.events) EXPECT_EQ(event.track, track);
  EXPECT_EQ(out.event_names.size(), 1u);  // interned once
  EXPECT_EQ(out.arg_names.size(), 1u);
}

// Times of a hostile trace must not overflow (UBSan watches).
TEST(TrackEventWriter, SliceAtTheEndOfTime) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    writer.slice(plain(writer, "t"), INT64_MAX, INT64_MAX, "s", "");
  });
  EXPECT_EQ(out.events.size(), 2u);
}

TEST(TrackEventWriter, NamesAreUtf8) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    writer.instant(plain(writer, "t\xff"), 1, "n\xff", "k\xff=v\xff");
  });
  EXPECT_EQ(out.tracks[0].name, "t\xef\xbf\xbd");
  EXPECT_EQ(out.events[0].name, "n\xef\xbf\xbd");
  EXPECT_EQ(out.events[0].args, (std::vector<Arg>{{"k\xef\xbf\xbd", "string", "v\xef\xbf\xbd"}}));
}

TEST(TrackEventWriter, FolderThatIsNotThere) {
  const TempDir dir;
  const auto error = testing::error_of(
      [&] { TrackEventWriter(dir.path("none/x.pftrace"), "x.pftrace", "boot", 0); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), Exit::kEnvironment);
}

}  // namespace
}  // namespace wbscope
