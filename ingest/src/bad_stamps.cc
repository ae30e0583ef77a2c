// SPDX-License-Identifier: Apache-2.0
// What is said of time stamps that are wrong.
#include "bad_stamps.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "sink/saved_text.h"

namespace wbscope {
namespace {

// As trace-cmd report prints it, with all digits.
std::string seconds(std::int64_t ts) {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  const auto bits = static_cast<std::uint64_t>(ts);
  const std::uint64_t size = ts < 0 ? 0 - bits : bits;
  char text[40];
  std::snprintf(text, sizeof(text), "%s%llu.%09llu", ts < 0 ? "-" : "",
                static_cast<unsigned long long>(size / kNsPerSecond),
                static_cast<unsigned long long>(size % kNsPerSecond));
  return text;
}

bool was_overwritten(const TraceInfo& info) {
  return std::any_of(info.cpu_stats.begin(), info.cpu_stats.end(), [](const std::string& text) {
    const CpuStat stat = parse_cpu_stat(text);
    return std::any_of(stat.values.begin(), stat.values.end(), [](const auto& each) {
      return each.first == "overrun" && each.second != "0";
    });
  });
}

std::string place_of(const StampStream& stream, const StampSegment& segment) {
  return ParseError::place("BUFFER FLYRECORD", segment.place.offset, stream.cpu) + ", page " +
         std::to_string(segment.place.page) + " of the piece there";
}

}  // namespace

StampPlan judge_stamps(const std::vector<StampStream>& streams, const TraceInfo& info) {
  return judge_stamps(streams,
                      {.overwritten = was_overwritten(info), .place_of = place_of});
}

Message bad_stamps_message(const StampPlan& plan, std::uint64_t records) {
  const std::string count = std::to_string(records);
  Message message{.slug = kBadStampsSlug,
                  .object = {},
                  .text = records == 1 ? "found a record with a time stamp that is far off those"
                                         " around it"
                                       : "found " + count + " records with time stamps that are"
                                         " far off those around them",
                  .at = {},
                  .have = {},
                  .effect = "nothing is left out; the time is now that of the record before",
                  .fix = "record or copy the trace again"};
  if (plan.places > 1) message.text += ", in " + std::to_string(plan.places) + " places";
  if (plan.bad.empty()) return message;
  const BadStamp& first = plan.bad.front();
  message.at = first.place;
  message.have = "stamp " + seconds(first.ts_found);
  if (first.before) message.have += ", after " + seconds(*first.before);
  if (first.after) message.have += ", before " + seconds(*first.after);
  return message;
}

}  // namespace wbscope
