// SPDX-License-Identifier: Apache-2.0
// How a Perfetto trace says which clock its times are of.
#include "perfetto/trace_clock.h"

#include <protozero/pbf_writer.hpp>

#include "perfetto/protos.h"

namespace wbscope {
namespace {

TraceClock named_clock(std::string_view name) {
  using namespace protos::bundle;
  if (name == "boot") return {.primary = clocks::kBoottime};
  if (name == "mono") return {.packets = clocks::kMonotonic, .primary = clocks::kMonotonic};
  if (name == "mono_raw") {
    return {.packets = clocks::kMonotonicRaw,
            .bundles = kClockMonoRaw,
            .primary = clocks::kMonotonicRaw};
  }
  if (name == "x86-tsc") return {.packets = clocks::kTsc, .primary = clocks::kTsc};
  if (name == "perf") return {.packets = clocks::kPerf, .primary = clocks::kPerf};
  TraceClock clock{.packets = clocks::kOwn, .primary = std::nullopt};
  if (name == "local") clock.bundles = kClockLocal;
  if (name == "global") clock.bundles = kClockGlobal;
  clock.bundles_need_pair = clock.bundles != 0;
  return clock;
}

}  // namespace

TraceClock trace_clock(std::string_view name, std::size_t machines) {
  TraceClock clock = named_clock(name);
  if (machines > 1) clock.primary.reset();
  return clock;
}

std::string clock_packet(const TraceClock& clock, std::int64_t ts, std::uint32_t sequence,
                         std::uint32_t machine) {
  using protozero::pbf_writer;
  using namespace protos;
  std::string bytes;
  pbf_writer out(bytes);
  {
    pbf_writer snapshot(out, packet::kClockSnapshot);
    const auto add = [&](std::uint32_t id) {
      pbf_writer entry(snapshot, clock_snapshot::kClocks);
      entry.add_uint32(clock_snapshot::kClockId, id);
      entry.add_uint64(clock_snapshot::kTimestamp, static_cast<std::uint64_t>(ts));
    };
    add(clock.packets);
    if (clock.packets != clocks::kBoottime) add(clocks::kBoottime);
    if (clock.primary) snapshot.add_uint32(clock_snapshot::kPrimaryTraceClock, *clock.primary);
  }
  out.add_uint32(packet::kSequenceId, sequence);
  if (machine != 0) out.add_uint32(packet::kMachineId, machine);
  return bytes;
}

}  // namespace wbscope
