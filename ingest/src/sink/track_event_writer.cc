// SPDX-License-Identifier: Apache-2.0
// Slices, instants and counters as a Perfetto trace.
// Field numbers: protos/perfetto/trace/{trace_packet,clock_snapshot}.proto and
// protos/perfetto/trace/track_event/*.proto of Perfetto.
#include "sink/track_event_writer.h"

#include <protozero/pbf_writer.hpp>

#include "base/utf8.h"
#include "perfetto/compressed_packets.h"

namespace wbscope {
namespace {

using protozero::pbf_writer;

constexpr std::uint32_t kTracePacket = 1;

namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                        kInternedData = 12, kSequenceFlags = 13,
                        kTimestampClockId = 58, kDefaults = 59, kTrackDescriptor = 60;
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet

namespace track_descriptor {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5,
                        kCounter = 8, kChildOrdering = 11, kSiblingOrderRank = 12,
                        kDescription = 14, kSiblingMergeBehavior = 15, kSiblingMergeKeyInt = 17;
constexpr std::int32_t kExplicit = 3, kMergeNone = 2, kMergeByKey = 3;
}  // namespace track_descriptor

namespace process_descriptor {
constexpr std::uint32_t kPid = 1, kProcessName = 6;
}  // namespace process_descriptor

namespace thread_descriptor {
constexpr std::uint32_t kPid = 1, kTid = 2, kThreadName = 5;
}  // namespace thread_descriptor

namespace counter_descriptor {
constexpr std::uint32_t kUnit = 3, kUnitName = 6, kYAxisShareKey = 7;
constexpr std::int32_t kCount = 2;
}  // namespace counter_descriptor

namespace track_event {
constexpr std::uint32_t kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11,
                        kCounterValue = 30, kDoubleCounterValue = 44, kFlowIds = 47;
constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace track_event

namespace interned_data {
constexpr std::uint32_t kEventNames = 2, kAnnotationNames = 3, kAnnotationTexts = 29;
constexpr std::uint32_t kIid = 1, kName = 2;
}  // namespace interned_data

namespace annotation {
constexpr std::uint32_t kNameIid = 1, kInt = 4, kDouble = 5, kTextIid = 17;
}  // namespace annotation

constexpr std::size_t kFlushBytes = 1u << 20;

void add_counter(const TrackDescription& track, pbf_writer& descriptor) {
  using namespace counter_descriptor;
  pbf_writer counter(descriptor, track_descriptor::kCounter);
  const std::string& unit = *track.unit;
  if (unit == "count") {
    counter.add_enum(kUnit, kCount);
  } else {
    counter.add_string(kUnitName, unit);
  }
  if (!track.axis.empty()) counter.add_string(kYAxisShareKey, track.axis);
}

std::int32_t small(std::int64_t number) { return static_cast<std::int32_t>(number); }

}  // namespace

TrackEventWriter::TrackEventWriter(PacketOutput& output, const TraceClock& clock,
                                   std::int64_t first_ts, std::uint32_t sequence)
    : output_(output),
      sequence_(sequence),
      first_id_(std::uint64_t{sequence - kTrackEventSequence} << 32),
      last_track_(first_id_) {
  packet_ = clock_packet(clock, first_ts, sequence);
  put_packet();

  packet_.clear();
  pbf_writer out(packet_);
  out.add_uint32(packet::kSequenceId, sequence_);
  out.add_uint32(packet::kSequenceFlags, packet::kStateCleared);
  {
    pbf_writer defaults(out, packet::kDefaults);
    defaults.add_uint32(packet::kTimestampClockId, clock.packets);
  }
  put_packet();
}

TrackEventWriter::~TrackEventWriter() = default;

std::uint64_t TrackEventWriter::add_track(const TrackDescription& track) {
  using namespace track_descriptor;
  const std::uint64_t uuid = ++last_track_;
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(kUuid, uuid);
  out.add_string(kName, replace_invalid_utf8(track.name));
  if (track.parent != 0) out.add_uint64(kParentUuid, track.parent);
  if (!track.description.empty()) {
    out.add_string(kDescription, replace_invalid_utf8(track.description));
  }
  if (track.unit) add_counter(track, out);
  out.add_enum(kChildOrdering, kExplicit);
  out.add_int32(kSiblingOrderRank, track.rank);
  if (track.same_track != 0) {
    out.add_enum(kSiblingMergeBehavior, kMergeByKey);
    const bool is_first = track.same_track == TrackDescription::kItself;
    out.add_uint64(kSiblingMergeKeyInt, is_first ? uuid : track.same_track);
  } else {
    out.add_enum(kSiblingMergeBehavior, kMergeNone);
  }
  put_track(bytes);
  return uuid;
}

std::uint64_t TrackEventWriter::add_process(std::int64_t pid, std::string_view name) {
  using namespace process_descriptor;
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(track_descriptor::kUuid, ++last_track_);
  {
    pbf_writer process(out, track_descriptor::kProcess);
    process.add_int32(kPid, small(pid));
    if (!name.empty()) process.add_string(kProcessName, replace_invalid_utf8(name));
  }
  put_track(bytes);
  return last_track_;
}

std::uint64_t TrackEventWriter::add_thread(std::int64_t pid, std::int64_t tid,
                                           std::string_view name) {
  using namespace thread_descriptor;
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(track_descriptor::kUuid, ++last_track_);
  {
    pbf_writer thread(out, track_descriptor::kThread);
    thread.add_int32(kPid, small(pid));
    thread.add_int32(kTid, small(tid));
    if (!name.empty()) thread.add_string(kThreadName, replace_invalid_utf8(name));
  }
  put_track(bytes);
  return last_track_;
}

std::uint64_t TrackEventWriter::intern(Interned& table, std::uint32_t field,
                                       std::string_view text) {
  if (const auto found = table.find(text); found != table.end()) return found->second;
  const std::uint64_t iid = table.size() + 1;
  table.emplace(std::string(text), iid);
  pbf_writer out(interned_);
  pbf_writer entry(out, field);
  entry.add_uint64(interned_data::kIid, iid);
  entry.add_string(interned_data::kName, replace_invalid_utf8(text));
  return iid;
}

void TrackEventWriter::begin_event(std::int32_t type, std::uint64_t track) {
  event_.clear();
  interned_.clear();
  pbf_writer out(event_);
  out.add_enum(track_event::kType, type);
  out.add_uint64(track_event::kTrackUuid, track);
}

void TrackEventWriter::add_name(std::string_view name) {
  pbf_writer(event_).add_uint64(track_event::kNameIid,
                                intern(event_names_, interned_data::kEventNames, name));
}

void TrackEventWriter::add_args(TrackArguments args) {
  for (const TrackArgument& arg : args) {
    const std::uint64_t name =
        intern(annotation_names_, interned_data::kAnnotationNames, arg.key);
    pbf_writer out(event_);
    pbf_writer entry(out, track_event::kDebugAnnotations);
    entry.add_uint64(annotation::kNameIid, name);
    if (const auto* integer = std::get_if<std::int64_t>(&arg.value)) {
      entry.add_int64(annotation::kInt, *integer);
    } else if (const auto* real = std::get_if<double>(&arg.value)) {
      entry.add_double(annotation::kDouble, *real);
    } else {
      entry.add_uint64(annotation::kTextIid,
                       intern(annotation_texts_, interned_data::kAnnotationTexts,
                              std::get<std::string_view>(arg.value)));
    }
  }
}

void TrackEventWriter::put_event(std::int64_t ts) {
  packet_.clear();
  pbf_writer out(packet_);
  out.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(ts));
  out.add_uint32(packet::kSequenceId, sequence_);
  out.add_uint32(packet::kSequenceFlags, packet::kNeedsState);
  if (!interned_.empty()) out.add_message(packet::kInternedData, interned_);
  out.add_message(packet::kTrackEvent, event_);
  put_packet();
}

void TrackEventWriter::slice(std::uint64_t track, std::int64_t ts, std::int64_t dur,
                             std::string_view name, TrackArguments args, Flows flows) {
  begin_event(track_event::kSliceBegin, track);
  add_name(name);
  add_args(args);
  pbf_writer out(event_);
  for (const std::uint64_t flow : flows) out.add_fixed64(track_event::kFlowIds, first_id_ + flow);
  put_event(ts);

  begin_event(track_event::kSliceEnd, track);
  // Unsigned: times of a hostile trace may wrap, and must not be undefined.
  put_event(static_cast<std::int64_t>(static_cast<std::uint64_t>(ts) +
                                      static_cast<std::uint64_t>(dur)));
}

void TrackEventWriter::instant(std::uint64_t track, std::int64_t ts, std::string_view name,
                               TrackArguments args) {
  begin_event(track_event::kInstant, track);
  add_name(name);
  add_args(args);
  put_event(ts);
}

void TrackEventWriter::counter(std::uint64_t track, std::int64_t ts, std::int64_t value) {
  begin_event(track_event::kCounter, track);
  pbf_writer(event_).add_int64(track_event::kCounterValue, value);
  put_event(ts);
}

void TrackEventWriter::counter(std::uint64_t track, std::int64_t ts, double value) {
  begin_event(track_event::kCounter, track);
  pbf_writer(event_).add_double(track_event::kDoubleCounterValue, value);
  put_event(ts);
}

void TrackEventWriter::put_track(const std::string& descriptor) {
  packet_.clear();
  pbf_writer out(packet_);
  out.add_uint32(packet::kSequenceId, sequence_);
  out.add_message(packet::kTrackDescriptor, descriptor);
  put_packet();
}

void TrackEventWriter::put_packet() {
  pbf_writer(pending_).add_message(kTracePacket, packet_);
  if (pending_.size() >= kFlushBytes) flush();
}

// As one packet that holds the others compressed: they are alike, and shrink to
// a tenth.
void TrackEventWriter::flush() {
  if (pending_.empty()) return;
  compress_packets(pending_, compressed_);
  output_.append({compressed_});
  pending_.clear();
}

void TrackEventWriter::finish() { flush(); }

}  // namespace wbscope
