// SPDX-License-Identifier: Apache-2.0
// The time stamps of a text's records.
#include "text/text_stamps.h"

#include <string>
#include <utility>

namespace wbscope {
namespace {

constexpr std::size_t kMostStreams = 1024;  // what other CPUs have is taken as it is
constexpr std::uint64_t kRecordsOfAPage = 16;

std::uint64_t pages_of(std::uint64_t records) {
  return (records + kRecordsOfAPage - 1) / kRecordsOfAPage;
}

}  // namespace

TextStamps::Stream& TextStamps::stream_of(std::uint32_t cpu) {
  if (current_ < cpus_.size() && cpus_[current_] == cpu) return streams_[current_];
  const auto [place, is_new] = place_of_.try_emplace(cpu, streams_.size());
  current_ = place->second;
  if (is_new) {
    cpus_.push_back(cpu);
    streams_.push_back({.track = StampTrack(most_segments(kMostStreams))});
    if (current_ < plan_.streams.size()) streams_.back().fixes = &plan_.streams[current_];
  }
  return streams_[current_];
}

void TextStamps::begin(Stream& stream, std::int64_t ts, std::uint64_t line) {
  stream.track.begin(ts, stream.last_ts, stream.records, pages_of(stream.records),
                     {.offset = line});
  if (stream.fixes == nullptr) return;
  const auto fix = stream.fixes->of(stream.track.begun() - 1, ts);
  stream.is_bad = fix.has_value();
  stream.fixed_ts = fix.value_or(0);
}

std::int64_t TextStamps::put_right(std::uint32_t cpu, std::int64_t ts, std::uint64_t line) {
  if (streams_.size() >= kMostStreams && !place_of_.contains(cpu)) return ts;
  Stream& stream = stream_of(cpu);
  if (stream.records == 0 || is_long_step(stream.last_ts, ts)) [[unlikely]] {
    begin(stream, ts, line);
  }
  stream.last_ts = ts;
  ++stream.records;
  if (!stream.is_bad) return ts;
  ++bad_records_;
  return stream.fixed_ts;
}

StampPlan TextStamps::judge(bool overwritten) {
  std::vector<StampStream> streams;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    stream.track.end(stream.last_ts, stream.records, pages_of(stream.records));
    streams.push_back({.cpu = cpus_[i], .buffer = 0, .track = stream.track});
  }
  const auto place_of = [](const StampStream&, const StampSegment& segment) {
    return "line " + std::to_string(segment.place.offset);
  };
  return judge_stamps(streams, {.overwritten = overwritten, .place_of = place_of});
}

}  // namespace wbscope
