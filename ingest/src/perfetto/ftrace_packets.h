// SPDX-License-Identifier: Apache-2.0
// FtracePackets: the records of one CPU as ftrace bundles.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "format/event_catalog.h"
#include "perfetto/event_encoder.h"
#include "perfetto/event_shape.h"
#include "perfetto/packet_output.h"
#include "perfetto/proto_buffer.h"
#include "perfetto/symbol_names.h"
#include "perfetto/trace_clock.h"
#include "pipeline/cpu_stream.h"

namespace wbscope {

// What all CPUs of a trace have in common. The references outlive it.
struct FtraceTrace {
  const EventCatalog& catalog;
  const std::vector<EventShapes>& shapes;
  SymbolNames& symbols;
  std::atomic<std::size_t>& interned;  // names, of all CPUs
  TraceClock clock;
  std::int64_t clock_pair_ts = 0;  // a time that both clocks of the pair show
  std::uint32_t sequence = kFirstFtraceSequence;
};

// What a thread needs to write packets of any CPU, and uses again.
struct PacketBuffers {
  ProtoBuffer head;
  ProtoBuffer events;
  ProtoBuffer tail;
  ProtoBuffer interned;
};

class FtracePackets {
 public:
  FtracePackets(const FtraceTrace& trace, std::uint32_t cpu, std::uint32_t machine);

  // Readers refuse a whole trace with such a CPU.
  static constexpr std::uint32_t kMaxCpus = 1024;

  // Appends the block's records to packets. Each event is described before it is
  // used, so blocks come in order.
  void write(const RecordBlock& block, EventEncoder& encoder, PacketBuffers& buffers,
             std::string& packets);

  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  // Records that readers drop: their time is before 0.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  // Which events occurred in their usual shape.
  [[nodiscard]] const std::unordered_set<std::uint32_t>& events() const noexcept {
    return usual_events_;
  }

 private:
  struct Switch {  // where a switch says from which task to which
    std::uint32_t event = UINT32_MAX;
    std::uint32_t prev_offset = 0;
    std::uint32_t next_offset = 0;
    std::uint32_t bytes = 0;  // a record needs
  };
  void find_switch();
  [[nodiscard]] bool is_chained(const RecordBlock& block) const;
  void add(const EventPlan& plan, const EventShape& shape, const RecordRef& ref,
           std::span<const std::byte> record, EventEncoder& encoder, PacketBuffers& buffers);
  void flush(PacketBuffers& buffers, std::string& packets);
  void intern(std::uint64_t address, PacketBuffers& buffers);

  const FtraceTrace& trace_;
  std::uint32_t cpu_;
  std::uint32_t machine_;
  Switch switch_;
  bool has_begun_ = false;
  bool is_chained_ = true;
  bool lost_before_ = false;
  std::vector<const EventShape*> to_describe_;
  std::unordered_set<const EventShape*> described_;
  std::array<const EventShape*, 64> seen_{};  // in front of it, by event
  std::unordered_set<std::uint32_t> usual_events_;
  std::unordered_set<std::uint64_t> interned_;
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace wbscope
