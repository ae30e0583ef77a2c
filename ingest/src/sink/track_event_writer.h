// SPDX-License-Identifier: Apache-2.0
// TrackEventWriter: tracks, slices, instants and counters as a Perfetto trace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "perfetto/packet_output.h"
#include "perfetto/trace_clock.h"

namespace wbscope {

// What a track is; a unit, as people are shown it, makes it a counter.
struct TrackDescription {
  static constexpr std::uint64_t kItself = UINT64_MAX;
  std::string name;
  std::string description;
  std::optional<std::string> unit;
  std::string axis;              // counters of one parent and axis share the y axis
  std::uint64_t parent = 0;      // 0: none
  // Tracks of one value here are shown as one: the first one says kItself, the
  // others its id. 0: a track is shown alone, whatever its name.
  std::uint64_t same_track = 0;
  std::int32_t rank = 0;         // order among its siblings
};

// One argument of a slice.
struct TrackArgument {
  std::string_view key;
  std::variant<std::int64_t, double, std::string_view> value;
};
using TrackArguments = std::span<const TrackArgument>;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

class TrackEventWriter {
 public:
  // Declares the clock of the time stamps; first_ts: a time of it. Raises: Error
  // (exit 5).
  // sequence: tells the packets, tracks and arrows of several outputs in one trace
  // apart.
  TrackEventWriter(PacketOutput& output, const TraceClock& clock, std::int64_t first_ts,
                   std::uint32_t sequence = kTrackEventSequence);
  ~TrackEventWriter();
  TrackEventWriter(const TrackEventWriter&) = delete;
  TrackEventWriter& operator=(const TrackEventWriter&) = delete;

  // Each makes a track and gives its id.
  std::uint64_t add_track(const TrackDescription& track);
  std::uint64_t add_process(std::int64_t pid, std::string_view name);
  std::uint64_t add_thread(std::int64_t pid, std::int64_t tid, std::string_view name);

  // An arrow is drawn between slices with the same number in flows, from the one
  // that begins first.
  using Flows = std::span<const std::uint64_t>;
  void slice(std::uint64_t track, std::int64_t ts, std::int64_t dur, std::string_view name,
             TrackArguments args, Flows flows = {});
  void instant(std::uint64_t track, std::int64_t ts, std::string_view name,
               TrackArguments args);
  void counter(std::uint64_t track, std::int64_t ts, std::int64_t value);
  void counter(std::uint64_t track, std::int64_t ts, double value);

  // Appends what is left. Raises: Error (exit 5).
  void finish();

 private:
  using Interned = std::unordered_map<std::string, std::uint64_t, StringHash, std::equal_to<>>;

  // Makes an id for text, and says in interned_ what it stands for.
  std::uint64_t intern(Interned& table, std::uint32_t field, std::string_view text);
  void begin_event(std::int32_t type, std::uint64_t track);
  void add_name(std::string_view name);
  void add_args(TrackArguments args);
  void put_event(std::int64_t ts);
  void put_track(const std::string& descriptor);
  void put_packet();
  void flush();

  PacketOutput& output_;
  std::uint32_t sequence_;
  std::uint64_t first_id_;  // of tracks and arrows
  std::string packet_, event_, interned_;  // being made
  std::string pending_, compressed_;       // packets that are not yet in the file
  Interned event_names_;
  Interned annotation_names_;
  Interned annotation_texts_;
  std::uint64_t last_track_;
};

}  // namespace wbscope
