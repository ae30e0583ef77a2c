// SPDX-License-Identifier: Apache-2.0
// TextStamps: the time stamps of a text's records, by CPU: those of one CPU rise
// also in a text that has one CPU after the other.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pipeline/stamp_check.h"

namespace wbscope {

class TextStamps {
 public:
  // plan: what to put right, empty for nothing. It outlives this.
  explicit TextStamps(const StampPlan& plan) : plan_(plan) {}

  // The time of the next record of a CPU.
  [[nodiscard]] std::int64_t put_right(std::uint32_t cpu, std::int64_t ts, std::uint64_t line);

  // After the last record: what is wrong. overwritten: the text says so.
  [[nodiscard]] StampPlan judge(bool overwritten);
  // Records that got another time.
  [[nodiscard]] std::uint64_t bad_records() const noexcept { return bad_records_; }

 private:
  struct Stream {
    StampTrack track;
    const StampFixes* fixes = nullptr;
    std::int64_t last_ts = 0;
    std::uint64_t records = 0;
    bool is_bad = false;
    std::int64_t fixed_ts = 0;
  };
  Stream& stream_of(std::uint32_t cpu);
  void begin(Stream& stream, std::int64_t ts, std::uint64_t line);

  const StampPlan& plan_;
  std::vector<std::uint32_t> cpus_;  // in the order in which they come, as streams_
  std::vector<Stream> streams_;
  std::map<std::uint32_t, std::size_t> place_of_;  // by CPU
  std::size_t current_ = 0;
  std::uint64_t bad_records_ = 0;
};

}  // namespace wbscope
