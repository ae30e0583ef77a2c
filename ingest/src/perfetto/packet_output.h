// SPDX-License-Identifier: Apache-2.0
// PacketOutput: a Perfetto trace file that several threads append packets to.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>

#include "base/write_budget.h"

namespace wbscope {

// A trace is its packets, one after the other, in any order but for two rules:
// clocks are declared before times that need them, and what a sequence interns
// comes before the packets that use it.
class PacketOutput {
 public:
  // name: what messages call the file; budget: how long it may get, outlives it.
  // Raises: Error (exit 5) when path cannot be written.
  PacketOutput(const std::string& path, std::string name, const WriteBudget* budget = nullptr);
  ~PacketOutput();
  PacketOutput(const PacketOutput&) = delete;
  PacketOutput& operator=(const PacketOutput&) = delete;

  // Appends the parts, which together are whole packets, tag and length
  // included. Raises: Error (exit 5), exit 3 when the file gets too long.
  void append(std::initializer_list<std::string_view> parts);
  // Appends one packet, given without its tag and length.
  void append_packet(std::string_view packet);

  // How long the file is; and makes it as short as it was. Nobody appends then.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  void cut(std::uint64_t bytes);

  // Closes the file. Raises: Error (exit 5).
  void finish();

 private:
  std::string name_;
  const WriteBudget* budget_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  std::mutex mutex_;
};

// The number of a packet's sequence. Each writer has its own, so that what one
// interns is not taken for the other's.
inline constexpr std::uint32_t kTrackEventSequence = 1;
inline constexpr std::uint32_t kFirstFtraceSequence = 16;  // one for each machine

}  // namespace wbscope
