// SPDX-License-Identifier: Apache-2.0
// Time stamps that are wrong: where those of a stream jump, and which of its
// parts between two jumps are not of the time when they were recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace wbscope {

inline constexpr std::uint64_t kLongStepNs = 3600ull * 1'000'000'000;

// Whether two stamps are more than an hour apart. Stamps of a hostile trace
// are any numbers, so their distance is counted without a sign.
[[nodiscard]] constexpr bool is_long_step(std::int64_t a, std::int64_t b) noexcept {
  const auto forward = static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
  return (a < b ? forward : 0 - forward) > kLongStepNs;
}

// Where a record lies: its piece of the file and its page in that, or its line.
struct StampPlace {
  std::uint64_t offset = 0;
  std::uint64_t page = 0;
};

// Records that follow one another without a jump.
struct StampSegment {
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
  std::uint64_t records = 0;
  std::uint64_t pages = 0;  // that it fills, about; of text: sixteen lines are one
  StampPlace place;
};

// The segments of one stream: a CPU in one buffer.
class StampTrack {
 public:
  explicit StampTrack(std::size_t most) : most_(most) {}

  // A record that begins a segment. last_ts: of the record before it; records
  // and pages: how many there are before it.
  void begin(std::int64_t ts, std::int64_t last_ts, std::uint64_t records, std::uint64_t pages,
             StampPlace place);
  // After the last record.
  void end(std::int64_t last_ts, std::uint64_t records, std::uint64_t pages);

  [[nodiscard]] bool has_begun() const noexcept { return begun_ > 0; }
  [[nodiscard]] bool has_jumps() const noexcept { return begun_ > 1; }
  // How many have begun; more than are kept when there are very many.
  [[nodiscard]] std::size_t begun() const noexcept { return begun_; }
  [[nodiscard]] const std::vector<StampSegment>& kept() const noexcept { return kept_; }
  // The largest of those that are not kept.
  [[nodiscard]] const std::optional<StampSegment>& largest_other() const noexcept {
    return largest_other_;
  }

 private:
  std::size_t most_;
  std::size_t begun_ = 0;
  std::uint64_t records_ = 0;  // before the segment
  std::uint64_t pages_ = 0;
  StampSegment current_;
  bool is_open_ = false;
  std::vector<StampSegment> kept_;
  std::optional<StampSegment> largest_other_;
};

// The stamps that the records of one stream get in place of wrong ones.
class StampFixes {
 public:
  // For the segment of this number, whose first record has this stamp; nothing
  // when it is good.
  [[nodiscard]] std::optional<std::int64_t> of(std::size_t segment, std::int64_t ts) const noexcept;
  // For a stamp that no record has, such as that of a page.
  [[nodiscard]] std::int64_t shown(std::int64_t ts) const noexcept;

 private:
  friend class StampJudge;
  struct Fix {
    bool is_bad = false;
    std::int64_t ts = 0;
    std::int64_t found = 0;
  };
  std::vector<Fix> fixes_;  // by segment
  std::int64_t first_ts_ = INT64_MIN;  // of what is good in its buffer
  std::int64_t last_ts_ = INT64_MAX;
};

// One segment that is wrong, for table bad_stamp and the warning.
struct BadStamp {
  std::int64_t ts_found = 0;
  std::int64_t ts = 0;
  std::uint32_t cpu = 0;
  std::uint32_t buffer = 0;
  std::uint64_t records = 0;
  std::optional<std::int64_t> before, after;  // good stamps beside it in its stream
  std::string place;
};

struct StampStream {
  std::uint32_t cpu = 0;
  std::uint32_t buffer = 0;
  StampTrack track;
};

// Empty when all stamps are to be believed.
struct StampPlan {
  static constexpr std::size_t kMostListed = 1000;

  std::vector<StampFixes> streams;  // in the order of the streams
  std::vector<BadStamp> bad;        // the first ones
  std::uint64_t places = 0;         // all
  std::int64_t first_ts = 0;        // of all streams, put right

  [[nodiscard]] bool is_empty() const noexcept { return places == 0; }
};

// How many segments of each stream are kept, that those of all have bounds.
[[nodiscard]] std::size_t most_segments(std::size_t streams) noexcept;

struct StampRules {
  // The ring buffer was overwritten: what a quiet CPU has may be days old.
  bool overwritten = false;
  std::function<std::string(const StampStream&, const StampSegment&)> place_of;
};

[[nodiscard]] StampPlan judge_stamps(const std::vector<StampStream>& streams,
                                     const StampRules& rules);

}  // namespace wbscope
