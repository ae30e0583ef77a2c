// SPDX-License-Identifier: Apache-2.0
// Slices, instants and counters as a Perfetto trace.
// Field numbers: protos/perfetto/trace/{trace_packet,clock_snapshot}.proto and
// protos/perfetto/trace/track_event/*.proto of Perfetto.
#include "sink/track_event_writer.h"

#include <cerrno>
#include <charconv>
#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "base/utf8.h"

namespace wbscope {
namespace {

using protozero::pbf_writer;

constexpr std::uint32_t kTracePacket = 1;

namespace packet {
constexpr std::uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                        kInternedData = 12, kSequenceFlags = 13, kTimestampClockId = 58,
                        kDefaults = 59, kTrackDescriptor = 60;
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet

namespace clock_snapshot {
constexpr std::uint32_t kClocks = 1, kPrimaryTraceClock = 2;
constexpr std::uint32_t kClockId = 1, kTimestamp = 2;
constexpr std::uint32_t kMonotonic = 3, kMonotonicRaw = 5, kBoottime = 6;
constexpr std::uint32_t kOwnClock = 128;  // the first id that producers may use
}  // namespace clock_snapshot

namespace track_descriptor {
constexpr std::uint32_t kUuid = 1, kName = 2, kParentUuid = 5, kCounter = 8, kChildOrdering = 11,
                        kSiblingOrderRank = 12, kSiblingMergeBehavior = 15;
constexpr std::int32_t kExplicit = 3, kMergeNone = 2;
}  // namespace track_descriptor

namespace counter_descriptor {
constexpr std::uint32_t kUnit = 3, kUnitName = 6, kYAxisShareKey = 7;
constexpr std::int32_t kTimeNs = 1, kCount = 2, kSizeBytes = 3;
}  // namespace counter_descriptor

namespace track_event {
constexpr std::uint32_t kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11,
                        kCounterValue = 30, kDoubleCounterValue = 44;
constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace track_event

namespace interned_data {
constexpr std::uint32_t kEventNames = 2, kAnnotationNames = 3;
constexpr std::uint32_t kIid = 1, kName = 2;
}  // namespace interned_data

namespace annotation {
constexpr std::uint32_t kNameIid = 1, kInt = 4, kDouble = 5, kString = 6;
}  // namespace annotation

constexpr std::uint32_t kSequence = 1;
constexpr std::size_t kFlushBytes = 1u << 20;

std::uint32_t clock_id(std::string_view clock) {
  if (clock == "boot") return clock_snapshot::kBoottime;
  if (clock == "mono") return clock_snapshot::kMonotonic;
  if (clock == "mono_raw") return clock_snapshot::kMonotonicRaw;
  return clock_snapshot::kOwnClock;
}

void add_unit(std::string_view unit, pbf_writer& counter) {
  using namespace counter_descriptor;
  if (unit == "ns") {
    counter.add_enum(kUnit, kTimeNs);
  } else if (unit == "count") {
    counter.add_enum(kUnit, kCount);
  } else if (unit == "bytes") {
    counter.add_enum(kUnit, kSizeBytes);
  } else {
    counter.add_string(kUnitName, std::string(unit));
  }
  // Curves of one unit under one parent are there to be compared.
  counter.add_string(kYAxisShareKey, std::string(unit));
}

// Where the part that starts at from ends: at a '/' that has no '\' before it.
std::size_t part_end(std::string_view path, std::size_t from) {
  for (std::size_t i = from; i < path.size(); ++i) {
    if (path[i] == '\\' && i + 1 < path.size() && path[i + 1] == '/') {
      ++i;
    } else if (path[i] == '/') {
      return i;
    }
  }
  return path.size();
}

std::string unescaped(std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\' && i + 1 < part.size() && part[i + 1] == '/') ++i;
    out += part[i];
  }
  return replace_invalid_utf8(out);
}

}  // namespace

TrackEventWriter::TrackEventWriter(const std::string& path, std::string name,
                                   std::string_view clock, std::int64_t first_ts)
    : name_(std::move(name)), file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) {
    throw_system_error("cannot-write", name_, "open the output", errno,
                       "name an output in a directory that you can write");
  }
  put_clock(clock, first_ts);
}

TrackEventWriter::~TrackEventWriter() = default;

void TrackEventWriter::put_clock(std::string_view clock, std::int64_t first_ts) {
  using namespace clock_snapshot;
  const std::uint32_t id = clock_id(clock);
  std::string packet_bytes;
  pbf_writer out(packet_bytes);
  {
    pbf_writer snapshot(out, packet::kClockSnapshot);
    const auto add_clock = [&](std::uint32_t clock_number) {
      pbf_writer entry(snapshot, kClocks);
      entry.add_uint32(kClockId, clock_number);
      entry.add_uint64(kTimestamp, static_cast<std::uint64_t>(first_ts));
    };
    add_clock(id);
    if (id == kOwnClock) {
      add_clock(kBoottime);
    } else {
      snapshot.add_uint32(kPrimaryTraceClock, id);
    }
  }
  out.add_uint32(packet::kSequenceId, kSequence);
  put_packet(packet_bytes);

  packet_bytes.clear();
  out.add_uint32(packet::kSequenceId, kSequence);
  out.add_uint32(packet::kSequenceFlags, packet::kStateCleared);
  {
    pbf_writer defaults(out, packet::kDefaults);
    defaults.add_uint32(packet::kTimestampClockId, id);
  }
  put_packet(packet_bytes);
}

std::uint64_t TrackEventWriter::track(std::string_view path,
                                      std::optional<std::string_view> unit,
                                      std::optional<std::int64_t> rank) {
  if (const auto found = tracks_.find(path); found != tracks_.end()) return found->second;
  std::uint64_t parent = 0;
  std::size_t from = 0;
  while (true) {
    const std::size_t end = part_end(path, from);
    const bool leaf = end == path.size();
    const std::string_view prefix = path.substr(0, end);
    const auto found = tracks_.find(prefix);
    if (found != tracks_.end()) {
      parent = found->second;
    } else {
      const std::uint64_t uuid = tracks_.size() + 1;
      const std::int64_t next = next_rank_[parent]++;
      std::string packet_bytes;
      pbf_writer out(packet_bytes);
      out.add_uint32(packet::kSequenceId, kSequence);
      {
        using namespace track_descriptor;
        pbf_writer track(out, packet::kTrackDescriptor);
        track.add_uint64(kUuid, uuid);
        track.add_string(kName, unescaped(path.substr(from, end - from)));
        if (parent != 0) track.add_uint64(kParentUuid, parent);
        if (leaf && unit) {
          pbf_writer counter(track, kCounter);
          add_unit(*unit, counter);
        } else {
          track.add_enum(kChildOrdering, kExplicit);
        }
        track.add_int32(kSiblingOrderRank, static_cast<std::int32_t>(leaf && rank ? *rank : next));
        track.add_enum(kSiblingMergeBehavior, kMergeNone);
      }
      put_packet(packet_bytes);
      tracks_.emplace(std::string(prefix), uuid);
      parent = uuid;
    }
    if (leaf) return parent;
    from = end + 1;
  }
}

std::uint64_t TrackEventWriter::intern(Interned& table, std::uint32_t field,
                                       std::string_view text, std::string& interned) {
  if (const auto found = table.ids.find(text); found != table.ids.end()) return found->second;
  const std::uint64_t iid = table.ids.size() + 1;
  table.ids.emplace(std::string(text), iid);
  pbf_writer out(interned);
  pbf_writer entry(out, field);
  entry.add_uint64(interned_data::kIid, iid);
  entry.add_string(interned_data::kName, replace_invalid_utf8(text));
  return iid;
}

void TrackEventWriter::add_args(std::string_view args, std::string& event,
                                std::string& interned) {
  while (!args.empty()) {
    const auto end = args.find('|');
    const auto pair = args.substr(0, end);
    args = end == std::string_view::npos ? std::string_view{} : args.substr(end + 1);
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || equals + 1 == pair.size()) continue;
    const auto value = pair.substr(equals + 1);
    const std::uint64_t iid = intern(annotation_names_, interned_data::kAnnotationNames,
                                     pair.substr(0, equals), interned);
    pbf_writer out(event);
    pbf_writer entry(out, track_event::kDebugAnnotations);
    entry.add_uint64(annotation::kNameIid, iid);
    std::int64_t integer = 0;
    double real = 0;
    const char* last = value.data() + value.size();
    if (const auto r = std::from_chars(value.data(), last, integer);
        r.ec == std::errc() && r.ptr == last) {
      entry.add_int64(annotation::kInt, integer);
    } else if (const auto d = std::from_chars(value.data(), last, real);
               d.ec == std::errc() && d.ptr == last) {
      entry.add_double(annotation::kDouble, real);
    } else {
      entry.add_string(annotation::kString, replace_invalid_utf8(value));
    }
  }
}

void TrackEventWriter::put_event(std::int64_t ts, const std::string& event,
                                 const std::string& interned) {
  std::string packet_bytes;
  pbf_writer out(packet_bytes);
  out.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(ts));
  out.add_uint32(packet::kSequenceId, kSequence);
  out.add_uint32(packet::kSequenceFlags, packet::kNeedsState);
  if (!interned.empty()) out.add_message(packet::kInternedData, interned);
  out.add_message(packet::kTrackEvent, event);
  put_packet(packet_bytes);
}

void TrackEventWriter::slice(std::uint64_t track, std::int64_t ts, std::int64_t dur,
                             std::string_view name, std::string_view args) {
  std::string event;
  std::string interned;
  pbf_writer out(event);
  out.add_enum(track_event::kType, track_event::kSliceBegin);
  out.add_uint64(track_event::kTrackUuid, track);
  out.add_uint64(track_event::kNameIid,
                 intern(event_names_, interned_data::kEventNames, name, interned));
  add_args(args, event, interned);
  put_event(ts, event, interned);

  event.clear();
  out.add_enum(track_event::kType, track_event::kSliceEnd);
  out.add_uint64(track_event::kTrackUuid, track);
  // Unsigned: times of a hostile trace may wrap, and must not be undefined.
  put_event(static_cast<std::int64_t>(static_cast<std::uint64_t>(ts) +
                                      static_cast<std::uint64_t>(dur)),
            event, {});
}

void TrackEventWriter::instant(std::uint64_t track, std::int64_t ts, std::string_view name,
                               std::string_view args) {
  std::string event;
  std::string interned;
  pbf_writer out(event);
  out.add_enum(track_event::kType, track_event::kInstant);
  out.add_uint64(track_event::kTrackUuid, track);
  out.add_uint64(track_event::kNameIid,
                 intern(event_names_, interned_data::kEventNames, name, interned));
  add_args(args, event, interned);
  put_event(ts, event, interned);
}

void TrackEventWriter::counter(std::uint64_t track, std::int64_t ts, std::int64_t value) {
  std::string event;
  pbf_writer out(event);
  out.add_enum(track_event::kType, track_event::kCounter);
  out.add_uint64(track_event::kTrackUuid, track);
  out.add_int64(track_event::kCounterValue, value);
  put_event(ts, event, {});
}

void TrackEventWriter::counter(std::uint64_t track, std::int64_t ts, double value) {
  std::string event;
  pbf_writer out(event);
  out.add_enum(track_event::kType, track_event::kCounter);
  out.add_uint64(track_event::kTrackUuid, track);
  out.add_double(track_event::kDoubleCounterValue, value);
  put_event(ts, event, {});
}

void TrackEventWriter::put_packet(const std::string& packet_bytes) {
  pbf_writer out(pending_);
  out.add_message(kTracePacket, packet_bytes);
  if (pending_.size() >= kFlushBytes) flush();
}

void TrackEventWriter::flush() {
  if (std::fwrite(pending_.data(), 1, pending_.size(), file_.get()) != pending_.size()) {
    throw_system_error("cannot-write", name_, "write the output", errno,
                       "check the free space of its directory");
  }
  pending_.clear();
}

void TrackEventWriter::finish() {
  flush();
  if (std::fclose(file_.release()) != 0) {
    throw_system_error("cannot-write", name_, "write the output", errno,
                       "check the free space of its directory");
  }
}

}  // namespace wbscope
