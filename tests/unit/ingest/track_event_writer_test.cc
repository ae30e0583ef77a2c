// SPDX-License-Identifier: Apache-2.0
// TrackEventWriter: what it wrote, decoded with protozero's reader. Field
// numbers: protos/perfetto/trace of Perfetto.
#include "sink/track_event_writer.h"

#include <gtest/gtest.h>

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
  std::string name, unit_name, share_key;
  bool is_counter = false;
  int unit = 0, rank = -1;
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
};

// A whole trace, names in place of their ids.
struct Decoded {
  std::vector<Track> tracks;
  std::vector<Event> events;
  Clocks clocks;
  std::uint32_t primary_clock = 0, default_clock = 0;
  std::map<std::uint64_t, std::string> event_names, arg_names;
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

void decode_track(pbf_reader in, Decoded& out) {
  Track& track = out.tracks.emplace_back();
  while (in.next()) {
    if (in.tag() == 1) track.uuid = in.get_uint64();
    else if (in.tag() == 2) track.name = message(in);
    else if (in.tag() == 5) track.parent = in.get_uint64();
    else if (in.tag() == 8) decode_counter(in.get_message(), track);
    else if (in.tag() == 12) track.rank = in.get_int32();
    else in.skip();
  }
}

void decode_names(pbf_reader in, Decoded& out) {
  while (in.next()) {
    auto& names = in.tag() == 2 ? out.event_names : out.arg_names;
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
    else if (in.tag() == 6) arg.type = "string", arg.value = message(in);
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

template <typename Fill>
Decoded written(const char* clock, Fill fill) {
  const TempDir dir;
  TrackEventWriter writer(dir.path("x.pftrace"), "x.pftrace", clock, 12345);
  fill(writer);
  writer.finish();
  const std::string bytes = testing::read_file(dir.path("x.pftrace"));
  Decoded out;
  pbf_reader in(bytes);
  while (in.next()) {
    EXPECT_EQ(in.tag(), 1u);
    decode_packet(in.get_message(), out);
  }
  return out;
}

std::uint64_t plain(TrackEventWriter& out, std::string_view path) {
  return out.track(path, std::nullopt, std::nullopt);
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

TEST(TrackEventWriter, TracksHaveTheirParents) {
  std::uint64_t leaf = 0, again = 0, sibling = 0;
  const Decoded out = written("boot", [&](TrackEventWriter& writer) {
    leaf = plain(writer, "Writeback/Throttle/dd 11");
    again = plain(writer, "Writeback/Throttle/dd 11");
    sibling = plain(writer, "Writeback/Throttle/dd 12");
  });
  ASSERT_EQ(out.tracks.size(), 4u);
  EXPECT_EQ(out.tracks[0].name, "Writeback");
  EXPECT_EQ(out.tracks[0].parent, 0u);
  EXPECT_EQ(out.tracks[1].name, "Throttle");
  EXPECT_EQ(out.tracks[1].parent, out.tracks[0].uuid);
  EXPECT_EQ(out.tracks[2].name, "dd 11");
  EXPECT_EQ(out.tracks[2].parent, out.tracks[1].uuid);
  EXPECT_EQ(out.tracks[3].parent, out.tracks[1].uuid);
  EXPECT_EQ(leaf, out.tracks[2].uuid);
  EXPECT_EQ(again, leaf);
  EXPECT_EQ(sibling, out.tracks[3].uuid);
  EXPECT_LT(out.tracks[2].rank, out.tracks[3].rank);  // first come first
}

TEST(TrackEventWriter, SlashInAName) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    (void)plain(writer, R"(Tasks/kworker\/u8:2/back\slash)");
  });
  ASSERT_EQ(out.tracks.size(), 3u);
  EXPECT_EQ(out.tracks[1].name, "kworker/u8:2");
  EXPECT_EQ(out.tracks[2].name, R"(back\slash)");
  EXPECT_EQ(out.tracks[2].parent, out.tracks[1].uuid);
}

TEST(TrackEventWriter, RankAndUnitOfALeaf) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    (void)writer.track("A/ns", "ns", 7);
    (void)writer.track("A/bytes", "bytes", 3);
    (void)writer.track("A/rate", "bytes/s", std::nullopt);
  });
  ASSERT_EQ(out.tracks.size(), 4u);
  EXPECT_FALSE(out.tracks[0].is_counter);
  EXPECT_TRUE(out.tracks[1].is_counter);
  EXPECT_EQ(out.tracks[1].unit, 1);
  EXPECT_EQ(out.tracks[1].rank, 7);
  EXPECT_EQ(out.tracks[2].unit, 3);
  EXPECT_EQ(out.tracks[2].rank, 3);
  EXPECT_EQ(out.tracks[3].unit_name, "bytes/s");
  EXPECT_EQ(out.tracks[3].share_key, "bytes/s");
}

TEST(TrackEventWriter, ArgsByTheirType) {
  const Decoded out = written("boot", [](TrackEventWriter& writer) {
    writer.instant(plain(writer, "t"), 5, "i",
                   "n=-7|r=0.5|s=8:16|big=9223372036854775808|empty=|none|x=a=b");
  });
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].args, (std::vector<Arg>{{"n", "int", "-7"},
                                                  {"r", "double", "0.500000"},
                                                  {"s", "string", "8:16"},
                                                  {"big", "double", "9223372036854775808.000000"},
                                                  {"x", "string", "a=b"}}));
}

TEST(TrackEventWriter, SlicesInstantsAndCounters) {
  std::uint64_t track = 0;
  const Decoded out = written("boot", [&](TrackEventWriter& writer) {
    track = plain(writer, "t");
    writer.slice(track, 100, 20, "pause", "a=1");
    writer.counter(track, 130, std::int64_t{-5});
    writer.counter(track, 140, 0.25);
    writer.instant(track, 150, "pause", "a=2");
  });
  ASSERT_EQ(out.events.size(), 5u);
  EXPECT_EQ(out.events[0].type, 1);
  EXPECT_EQ(out.events[0].name, "pause");
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
