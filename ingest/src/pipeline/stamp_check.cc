// SPDX-License-Identifier: Apache-2.0
// Which time stamps are wrong. A clock does not jump back, so a part of a CPU's
// records that contradicts its place is not of its time; nor is a page at the
// begin or end that lies a day off from everything else. A long pause is none of
// these: what follows it follows it on every CPU.
#include "pipeline/stamp_check.h"

#include <algorithm>
#include <map>

namespace wbscope {
namespace {

constexpr std::size_t kMostSegments = 4096;  // of a stream
constexpr std::size_t kLeastSegments = 16;
constexpr std::size_t kAllSegments = 1u << 18;
constexpr std::uint64_t kDayNs = 24 * kLongStepNs;
constexpr std::uint64_t kFarOff = kDayNs;
constexpr std::uint64_t kFarOffOverwritten = 30 * kDayNs;
// What is wrong is the smaller part by this.
constexpr std::uint64_t kBodyShare = 2;

std::uint64_t distance(std::int64_t from, std::int64_t to) noexcept {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

}  // namespace

std::size_t most_segments(std::size_t streams) noexcept {
  return std::clamp(kAllSegments / std::max<std::size_t>(streams, 1), kLeastSegments,
                    kMostSegments);
}

void StampTrack::begin(std::int64_t ts, std::int64_t last_ts, std::uint64_t records,
                       std::uint64_t pages, StampPlace place) {
  end(last_ts, records, pages);
  ++begun_;
  records_ = records;
  pages_ = pages;
  current_ = {.first_ts = ts, .last_ts = ts, .records = 0, .pages = 0, .place = place};
  is_open_ = true;
}

void StampTrack::end(std::int64_t last_ts, std::uint64_t records, std::uint64_t pages) {
  if (!is_open_) return;
  is_open_ = false;
  current_.last_ts = last_ts;
  current_.records = records - records_;
  current_.pages = std::max<std::uint64_t>(pages - pages_, 1);
  if (kept_.size() < most_) {
    kept_.push_back(current_);
  } else if (!largest_other_ || largest_other_->records < current_.records) {
    largest_other_ = current_;
  }
}

std::optional<std::int64_t> StampFixes::of(std::size_t segment, std::int64_t ts) const noexcept {
  if (segment < fixes_.size()) {
    return fixes_[segment].is_bad ? std::optional(fixes_[segment].ts) : std::nullopt;
  }
  // So many jumps that they are not kept: what is outside of the good ones is bad.
  const std::int64_t near = std::clamp(ts, first_ts_, last_ts_);
  return near == ts ? std::nullopt : std::optional(near);
}

std::int64_t StampFixes::shown(std::int64_t ts) const noexcept {
  for (const Fix& fix : fixes_) {
    if (fix.is_bad && !is_long_step(fix.found, ts)) return fix.ts;
  }
  return std::clamp(ts, first_ts_, last_ts_);
}

class StampJudge {
 public:
  StampJudge(const std::vector<StampStream>& streams, const StampRules& rules)
      : streams_(streams), rules_(rules), bad_(streams.size()) {
    plan_.streams.resize(streams.size());
    for (std::size_t s = 0; s < streams.size(); ++s) {
      bad_[s].assign(streams[s].track.kept().size(), false);
      buffers_[streams[s].buffer].push_back(s);
    }
  }

  [[nodiscard]] StampPlan judge() {
    for (const auto& [buffer, members] : buffers_) judge_buffer(members);
    if (plan_.is_empty()) return {};
    std::optional<std::int64_t> first;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      list_stream(s);
      const auto& kept = streams_[s].track.kept();
      if (kept.empty()) continue;
      const std::int64_t ts = plan_.streams[s].of(0, kept[0].first_ts).value_or(kept[0].first_ts);
      first = std::min(first.value_or(ts), ts);
    }
    plan_.first_ts = first.value_or(0);
    return std::move(plan_);
  }

 private:
  static constexpr std::size_t kOther = SIZE_MAX;  // one that is not kept

  struct Part {
    std::int64_t low, high;
    std::size_t stream, segment;
    std::uint64_t records, pages;
    std::size_t cluster = 0;
  };
  // Parts of any stream with no hour between them.
  struct Cluster {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::uint64_t records = 0;
    std::uint64_t pages = 0;
    std::size_t stream = 0;
    bool is_of_one_stream = true;
  };

  std::vector<Part> parts_of(const std::vector<std::size_t>& members) const {
    std::vector<Part> parts;
    const auto add = [&parts](std::size_t stream, std::size_t number, const StampSegment& segment) {
      parts.push_back({.low = std::min(segment.first_ts, segment.last_ts),
                       .high = std::max(segment.first_ts, segment.last_ts),
                       .stream = stream,
                       .segment = number,
                       .records = segment.records,
                       .pages = segment.pages});
    };
    for (const std::size_t s : members) {
      const StampTrack& track = streams_[s].track;
      for (std::size_t i = 0; i < track.kept().size(); ++i) add(s, i, track.kept()[i]);
      if (track.largest_other()) add(s, kOther, *track.largest_other());
    }
    return parts;
  }

  // Gives each part its cluster.
  static std::vector<Cluster> clusters_of(std::vector<Part>& parts) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.low < b.low; });
    std::vector<Cluster> clusters;
    for (Part& part : parts) {
      if (clusters.empty() ||
          (part.low > clusters.back().high && is_long_step(clusters.back().high, part.low))) {
        clusters.push_back({.low = part.low, .high = part.high, .stream = part.stream});
      }
      Cluster& cluster = clusters.back();
      cluster.high = std::max(cluster.high, part.high);
      cluster.records += part.records;
      cluster.pages += part.pages;
      cluster.is_of_one_stream = cluster.is_of_one_stream && cluster.stream == part.stream;
      part.cluster = clusters.size() - 1;
    }
    return clusters;
  }

  void judge_buffer(const std::vector<std::size_t>& members) {
    std::vector<Part> parts = parts_of(members);
    const std::vector<Cluster> clusters = clusters_of(parts);
    if (clusters.size() < 2) return;
    const auto largest = std::max_element(
        clusters.begin(), clusters.end(),
        [](const Cluster& a, const Cluster& b) { return a.records < b.records; });
    const auto body = static_cast<std::size_t>(largest - clusters.begin());

    // The first and last segment of each stream that is of the body.
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> of_body;
    for (const Part& part : parts) {
      if (part.cluster != body) continue;
      const auto [place, is_new] = of_body.try_emplace(part.stream, part.segment, part.segment);
      place->second.first = std::min(place->second.first, part.segment);
      place->second.second = std::max(place->second.second, part.segment);
    }
    std::int64_t good_first = largest->low;
    std::int64_t good_last = largest->high;
    std::uint64_t found = 0;
    for (const Part& part : parts) {
      const Cluster& cluster = clusters[part.cluster];
      const bool is_small = largest->records / kBodyShare >= cluster.records;
      const bool is_late = part.low > largest->high;
      bool is_bad = false;
      if (part.cluster != body && is_small) {
        const auto place = of_body.find(part.stream);
        if (place != of_body.end()) {
          is_bad = is_late ? place->second.second > part.segment : place->second.first < part.segment;
        }
        const std::uint64_t far = is_late ? distance(largest->high, cluster.low)
                                          : distance(cluster.high, largest->low);
        const bool may_be_old = rules_.overwritten && !is_late;
        is_bad = is_bad || (cluster.is_of_one_stream && cluster.pages <= 1 &&
                            far > (may_be_old ? kFarOffOverwritten : kFarOff));
      }
      if (!is_bad) {
        good_first = std::min(good_first, part.low);
        good_last = std::max(good_last, part.high);
      } else if (part.segment != kOther) {
        bad_[part.stream][part.segment] = true;
        ++found;
      }
    }
    plan_.places += found;
    for (const std::size_t s : members) {
      plan_.streams[s].first_ts_ = good_first;
      plan_.streams[s].last_ts_ = good_last;
    }
  }

  // What its bad segments get, and the list of them.
  void list_stream(std::size_t index) {
    const StampStream& stream = streams_[index];
    const auto& kept = stream.track.kept();
    StampFixes& fixes = plan_.streams[index];
    std::optional<std::int64_t> before;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      StampFixes::Fix fix{.is_bad = bad_[index][i], .ts = 0, .found = kept[i].first_ts};
      if (fix.is_bad) {
        const auto after = good_behind(index, i);
        const std::int64_t end = std::clamp(fix.found, fixes.first_ts_, fixes.last_ts_);
        fix.ts = before.value_or(after.value_or(end));
        if (plan_.bad.size() < StampPlan::kMostListed) {
          plan_.bad.push_back({.ts_found = fix.found,
                               .ts = fix.ts,
                               .cpu = stream.cpu,
                               .buffer = stream.buffer,
                               .records = kept[i].records,
                               .before = before,
                               .after = after,
                               .place = rules_.place_of(stream, kept[i])});
        }
      } else {
        before = kept[i].last_ts;
      }
      fixes.fixes_.push_back(fix);
    }
  }

  std::optional<std::int64_t> good_behind(std::size_t stream, std::size_t segment) {
    const auto& bad = bad_[stream];
    const auto good = std::find(bad.begin() + static_cast<std::ptrdiff_t>(segment), bad.end(), false);
    if (good == bad.end()) return std::nullopt;
    return streams_[stream].track.kept()[static_cast<std::size_t>(good - bad.begin())].first_ts;
  }

  const std::vector<StampStream>& streams_;
  const StampRules& rules_;
  std::map<std::uint32_t, std::vector<std::size_t>> buffers_;  // streams by buffer
  std::vector<std::vector<bool>> bad_;                         // by stream and segment
  StampPlan plan_;
};

StampPlan judge_stamps(const std::vector<StampStream>& streams, const StampRules& rules) {
  return StampJudge(streams, rules).judge();
}

}  // namespace wbscope
