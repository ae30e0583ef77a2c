// SPDX-License-Identifier: Apache-2.0
// TrackEventWriter: what it wrote, read back.
#include "sink/track_event_writer.h"

#include <gtest/gtest.h>

#include "decoded_trace.h"

namespace wbscope {
namespace {

using testing::Arg;
using testing::Clocks;
using testing::Decoded;
using testing::TempDir;
using testing::written;

std::uint64_t plain(TrackEventWriter& out, const std::string& name) {
  return out.add_track({.name = name, .description = {}, .unit = {}, .axis = {}});
}

TEST(TrackEventWriter, ClocksThatPerfettoKnows) {
  const std::pair<const char*, std::uint32_t> known[] = {{"mono", 3}, {"mono_raw", 5}, {"x86-tsc", 9}};
  for (const auto& [name, id] : known) {
    const Decoded out = written(name, [](TrackEventWriter&) {});
    EXPECT_EQ(out.clocks, (Clocks{{id, 12345}, {6, 12345}}));
    EXPECT_EQ(out.primary_clock, id);
    EXPECT_EQ(out.default_clock, id);
  }
  const Decoded boot = written("boot", [](TrackEventWriter&) {});
  EXPECT_EQ(boot.clocks, (Clocks{{6, 12345}}));
  EXPECT_EQ(boot.default_clock, 6u);
}

TEST(TrackEventWriter, NoClockOfOneMachineIsThatOfSeveral) {
  for (const char* name : {"boot", "mono", "x86-tsc"}) {
    const Decoded out = written(name, [](TrackEventWriter&) {}, 2);
    EXPECT_EQ(out.clocks.back(), (Clocks::value_type{6, 12345})) << name;
    EXPECT_EQ(out.primary_clock, 0u) << name;
  }
}

TEST(TrackEventWriter, OtherClocksRunLikeBoottime) {
  for (const char* name : {"local", "global", ""}) {
    const Decoded out = written(name, [](TrackEventWriter&) {});
    EXPECT_EQ(out.clocks, (Clocks{{128, 12345}, {6, 12345}}));
    EXPECT_EQ(out.default_clock, 128u);
  }
}

TEST(TrackEventWriter, ArgsByTheirType) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    const TrackArgument args[] = {{"n", std::int64_t{-7}}, {"r", 0.5},
                                  {"s", "8:16"},           {"comm", "7"},
                                  {"bar", R"(a|b\)"},      {"no", ""}};
    writer.instant(plain(writer, "t"), 5, "i", args);
  });
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].args, (std::vector<Arg>{{"n", "int", "-7"},
                                                  {"r", "double", "0.500000"},
                                                  {"s", "string", "8:16"},
                                                  {"comm", "string", "7"},
                                                  {"bar", "string", R"(a|b\)"},
                                                  {"no", "string", ""}}));
}

TEST(TrackEventWriter, SlicesInstantsAndCounters) {
  std::uint64_t track = 0;
  const Decoded out = written("boot", [&](TrackEventWriter& writer) {
    track = plain(writer, "t");
    const TrackArgument one[] = {{"a", std::int64_t{1}}}, two[] = {{"a", std::int64_t{2}}};
    writer.slice(track, 100, 20, "pause", one, std::vector<std::uint64_t>{7, 8});
    writer.counter(track, 130, std::int64_t{-5});
    writer.counter(track, 140, 0.25);
    writer.instant(track, 150, "pause", two);
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
    writer.slice(plain(writer, "t"), INT64_MAX, INT64_MAX, "s", {});
  });
  EXPECT_EQ(out.events.size(), 2u);
}

TEST(TrackEventWriter, NamesAreUtf8) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    const TrackArgument args[] = {{"k\xff", "v\xff"}};
    writer.instant(plain(writer, "t\xff"), 1, "n\xff", args);
  });
  EXPECT_EQ(out.tracks[0].name, "t\xef\xbf\xbd");
  EXPECT_EQ(out.events[0].name, "n\xef\xbf\xbd");
  EXPECT_EQ(out.events[0].args, (std::vector<Arg>{{"k\xef\xbf\xbd", "string", "v\xef\xbf\xbd"}}));
}

}  // namespace
}  // namespace wbscope
