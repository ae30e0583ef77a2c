// SPDX-License-Identifier: Apache-2.0
// The records of one CPU as ftrace bundles.
#include "perfetto/ftrace_packets.h"

#include <algorithm>
#include <string_view>

#include "perfetto/protos.h"

namespace wbscope {
namespace {

using namespace protos;

// A bundle is one message, and readers take it whole.
constexpr std::size_t kBundleBytes = 1u << 20;
constexpr std::size_t kKeptBytes = 2u << 20;
// Of all CPUs; fields full of other numbers must not take all memory.
constexpr std::size_t kMaxInterned = 1u << 20;

const FieldPlan* number_field(const EventPlan& plan, std::string_view name) {
  for (const auto& field : plan.fields) {
    const bool fits = field.kind == FieldKind::kInteger && field.bytes == 4;
    if (field.name == name && fits) return &field;
  }
  return nullptr;
}

std::size_t varint_bytes(std::uint64_t value) noexcept {
  return static_cast<std::size_t>(protozero::length_of_varint(value));
}

}  // namespace

FtracePackets::FtracePackets(const FtraceTrace& trace, std::uint32_t cpu, std::uint32_t machine)
    : trace_(trace), cpu_(cpu), machine_(machine) {
  find_switch();
}

void FtracePackets::find_switch() {
  for (std::uint32_t i = 0; i < trace_.shapes.size(); ++i) {
    if (trace_.shapes[i].when != OtherShape::kUnlessChained) continue;
    const EventPlan& plan = trace_.catalog.events[i];
    const FieldPlan* prev = number_field(plan, "prev_pid");
    const FieldPlan* next = number_field(plan, "next_pid");
    if (prev == nullptr || next == nullptr) continue;
    switch_ = {.event = i,
               .prev_offset = prev->offset,
               .next_offset = next->offset,
               .bytes = std::max(prev->end(), next->end())};
    return;
  }
}

// Whether each switch goes on with the task that the one before it went to. A
// recording that was filtered has gaps that nobody counts, and readers would
// make tasks of them that run for ever.
bool FtracePackets::is_chained(const RecordBlock& block) const {
  bool is_known = false;
  std::uint32_t running = 0;
  auto gap = block.gaps.begin();
  for (std::size_t i = 0; i < block.refs.size(); ++i) {
    for (; gap != block.gaps.end() && *gap <= i; ++gap) is_known = false;
    const auto record = block.bytes(block.refs[i]);
    if (block.refs[i].event != switch_.event || record.size() < switch_.bytes) continue;
    // Whether they are equal does not depend on the byte order.
    const auto prev = load<std::uint32_t>(record.data() + switch_.prev_offset, kHostOrder);
    if (is_known && running != prev) return false;
    is_known = true;
    running = load<std::uint32_t>(record.data() + switch_.next_offset, kHostOrder);
  }
  return true;
}

void FtracePackets::write(const RecordBlock& block, EventEncoder& encoder,
                          PacketBuffers& buffers, std::string& packets) {
  if (!has_begun_ && switch_.event != UINT32_MAX) is_chained_ = is_chained(block);
  has_begun_ = true;
  auto gap = block.gaps.begin();
  for (std::size_t i = 0; i < block.refs.size(); ++i) {
    if (gap != block.gaps.end() && *gap <= i) [[unlikely]] {
      flush(buffers, packets);
      while (gap != block.gaps.end() && *gap <= i) ++gap;
      lost_before_ = true;
    }
    const RecordRef& ref = block.refs[i];
    if (ref.ts < 0) [[unlikely]] {
      ++dropped_;
      continue;
    }
    const EventPlan& plan = trace_.catalog.events[ref.event];
    const EventShapes& shapes = trace_.shapes[ref.event];
    const auto record = block.bytes(ref);
    bool usual = true;
    if (shapes.when == OtherShape::kUnlessChained) usual = is_chained_;
    if (shapes.when == OtherShape::kUnlessMark) {
      usual = is_atrace_mark(encoder.text_of(plan, "buf", record));
    }
    add(plan, usual ? shapes.usual : shapes.other, ref, record, encoder, buffers);
    ++written_;
    if (buffers.events.size() >= kBundleBytes) flush(buffers, packets);
  }
  flush(buffers, packets);
  lost_before_ |= gap != block.gaps.end();
}

void FtracePackets::add(const EventPlan& plan, const EventShape& shape, const RecordRef& ref,
                        std::span<const std::byte> record, EventEncoder& encoder,
                        PacketBuffers& buffers) {
  const EventShape*& seen = seen_[ref.event % seen_.size()];
  if (seen != &shape && described_.insert(&shape).second) [[unlikely]] {
    if (shape.form == EventShape::Form::kGeneric) to_describe_.push_back(&shape);
    if (shape.form == EventShape::Form::kOwn) usual_events_.insert(ref.event);
  }
  seen = &shape;
  const auto message = encoder.encode(
      plan, shape, record, [&](std::uint64_t address) { intern(address, buffers); });
  // A record too short to tell its thread.
  const auto tid = static_cast<std::uint32_t>(ref.tid == INT32_MIN ? 0 : ref.tid);
  const auto ts = static_cast<std::uint64_t>(ref.ts);
  const std::size_t bytes = 2 + varint_bytes(ts) + varint_bytes(tid) +
                            varint_bytes(shape.number << 3) + varint_bytes(message.size()) +
                            message.size();
  ProtoBuffer& out = buffers.events;
  out.head(bundle::kEvent, bytes);
  // Readers are fastest when time, thread and event come in this order.
  out.number(event::kTimestamp, ts);
  out.number(event::kPid, tid);
  out.bytes(shape.number, message);
}

void FtracePackets::intern(std::uint64_t address, PacketBuffers& buffers) {
  if (trace_.interned >= kMaxInterned || !interned_.insert(address).second) return;
  ++trace_.interned;
  const std::string name = trace_.symbols.name(address);
  if (name.empty()) return;
  ProtoBuffer symbol;
  symbol.number(interned::kIid, address);
  symbol.bytes(interned::kStr, name);
  buffers.interned.bytes(interned::kKernelSymbols, symbol.view());
}

void FtracePackets::flush(PacketBuffers& buffers, std::string& packets) {
  if (buffers.events.empty()) return;
  ProtoBuffer& head = buffers.head;
  ProtoBuffer& tail = buffers.tail;
  head.clear();
  tail.clear();
  head.number(bundle::kCpu, cpu_);
  if (lost_before_) head.number(bundle::kLostEvents, 1);
  if (trace_.clock.bundles != 0) head.number(bundle::kFtraceClock, trace_.clock.bundles);
  if (trace_.clock.bundles_need_pair) {
    const auto ts = static_cast<std::uint64_t>(trace_.clock_pair_ts);
    head.number(bundle::kFtraceTimestamp, ts);
    head.number(bundle::kBootTimestamp, ts);
  }
  for (const EventShape* shape : to_describe_) tail.bytes(bundle::kDescriptors, shape->descriptor);
  to_describe_.clear();
  lost_before_ = false;
  const std::size_t bundle_bytes = head.size() + buffers.events.size() + tail.size();
  tail.number(packet::kSequenceId, trace_.sequence);
  if (machine_ != 0) tail.number(packet::kMachineId, machine_);
  if (!buffers.interned.empty()) tail.bytes(packet::kInternedData, buffers.interned.view());

  ProtoBuffer start;
  const std::size_t packet_bytes = 1 + varint_bytes(bundle_bytes) + head.size() +
                                   buffers.events.size() + tail.size();
  start.head(1, packet_bytes);  // Trace.packet
  start.head(packet::kFtraceEvents, bundle_bytes);
  for (const auto part : {start.view(), head.view(), buffers.events.view(), tail.view()}) {
    packets.append(part);
  }
  buffers.events.clear();
  buffers.interned.clear();
  buffers.events.shrink(kKeptBytes);
}

}  // namespace wbscope
