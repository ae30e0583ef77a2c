// SPDX-License-Identifier: Apache-2.0
// A Perfetto trace of track events, decoded with protozero's reader. Field
// numbers: protos/perfetto/trace of Perfetto.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <ostream>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perfetto/packet_output.h"
#include "sink/track_event_writer.h"
#include "support.h"

namespace wbscope::testing {

using protozero::pbf_reader;

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

inline std::string message(pbf_reader& in) {
  const auto view = in.get_view();
  return {view.data(), view.size()};
}

inline void decode_clocks(pbf_reader in, Decoded& out) {
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

inline void decode_counter(pbf_reader in, Track& track) {
  track.is_counter = true;
  while (in.next()) {
    if (in.tag() == 3) track.unit = in.get_enum();
    else if (in.tag() == 6) track.unit_name = message(in);
    else if (in.tag() == 7) track.share_key = message(in);
    else in.skip();
  }
}

inline void decode_owner(pbf_reader in, Track& track) {
  while (in.next()) {
    if (in.tag() == 1) track.of["pid"] = std::to_string(in.get_int32());
    else if (in.tag() == 2) track.of["tid"] = std::to_string(in.get_int32());
    else if (in.tag() == 5) track.of["thread"] = message(in);
    else if (in.tag() == 6) track.of["process"] = message(in);
    else in.skip();
  }
}

inline void decode_track(pbf_reader in, Decoded& out) {
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

inline void decode_names(pbf_reader in, Decoded& out) {
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

inline Arg decode_arg(pbf_reader in, const Decoded& out) {
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

inline void decode_event(pbf_reader in, std::uint64_t ts, Decoded& out) {
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

inline void decode_packet(pbf_reader in, Decoded& out) {
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
inline void decode_trace(const std::string& bytes, Decoded& out) {
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
Decoded written(const char* clock, Fill fill, std::size_t machines = 1) {
  const TempDir dir;
  PacketOutput packets(dir.path("x.pftrace"), "x.pftrace");
  TrackEventWriter writer(packets, trace_clock(clock, machines), 12345);
  fill(writer);
  writer.finish();
  packets.finish();
  const std::string bytes = read_file(dir.path("x.pftrace"));
  Decoded out;
  decode_trace(bytes, out);
  return out;
}

}  // namespace wbscope::testing
