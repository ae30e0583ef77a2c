// SPDX-License-Identifier: Apache-2.0
// Field numbers of Perfetto's messages (protos/perfetto/trace: trace_packet,
// clock_snapshot, ftrace/ftrace_event_bundle, ftrace/ftrace_event,
// ftrace/generic, ftrace/ftrace_stats, system_info, generic_kernel/generic_task).
#pragma once

#include <cstdint>

namespace wbscope::protos {

inline constexpr std::uint32_t kPacketTag = 1u << 3 | 2u;  // Trace.packet

namespace packet {
inline constexpr std::uint32_t kFtraceEvents = 1, kClockSnapshot = 6, kTimestamp = 8,
                               kSequenceId = 10, kInternedData = 12, kSequenceFlags = 13,
                               kTraceConfig = 33, kFtraceStats = 34, kSystemInfo = 45,
                               kTimestampClockId = 58, kMachineId = 98, kTaskRename = 120;
inline constexpr std::uint32_t kStateCleared = 1;
}  // namespace packet

namespace bundle {
inline constexpr std::uint32_t kCpu = 1, kEvent = 2, kLostEvents = 3, kFtraceClock = 5,
                               kFtraceTimestamp = 6, kBootTimestamp = 7, kDescriptors = 11;
inline constexpr std::uint32_t kClockGlobal = 2, kClockLocal = 3, kClockMonoRaw = 4;
}  // namespace bundle

namespace descriptor {
inline constexpr std::uint32_t kFieldId = 1, kEventDescriptor = 2, kGroupName = 3;
inline constexpr std::uint32_t kMessageName = 1, kMessageField = 2;            // DescriptorProto
inline constexpr std::uint32_t kName = 1, kNumber = 3, kLabel = 4, kType = 5;  // FieldDescriptor
inline constexpr std::uint32_t kOptional = 1;
inline constexpr std::uint32_t kInt64 = 3, kUint64 = 4, kString = 9;
}  // namespace descriptor

namespace event {
inline constexpr std::uint32_t kTimestamp = 1, kPid = 2, kGeneric = 327;
// Generic events have their own numbers, by which readers know them.
inline constexpr std::uint32_t kFirstGeneric = 65536, kLastGeneric = 131071;
// Readers take no field of a generic event with a number above.
inline constexpr std::uint32_t kMaxGenericField = 31;
}  // namespace event

namespace generic {
inline constexpr std::uint32_t kEventName = 1, kField = 2;
inline constexpr std::uint32_t kName = 1, kText = 3, kInt = 4, kUint = 5;  // of a field
}  // namespace generic

namespace interned {
inline constexpr std::uint32_t kKernelSymbols = 26;
inline constexpr std::uint32_t kIid = 1, kStr = 2;
}  // namespace interned

namespace clock_snapshot {
inline constexpr std::uint32_t kClocks = 1, kPrimaryTraceClock = 2;
inline constexpr std::uint32_t kClockId = 1, kTimestamp = 2;
}  // namespace clock_snapshot

namespace system_info {
inline constexpr std::uint32_t kUtsname = 1, kServiceVersion = 4, kPageSize = 6, kCpus = 8,
                               kMachineName = 17;
inline constexpr std::uint32_t kSysname = 1, kVersion = 2, kRelease = 3, kMachine = 4;
}  // namespace system_info

namespace trace_config {
inline constexpr std::uint32_t kDataSources = 2, kConfig = 1, kName = 1, kFtraceConfig = 100,
                               kFtraceEvents = 1, kUniqueSessionName = 22;
}  // namespace trace_config

namespace ftrace_stats {
inline constexpr std::uint32_t kPhase = 1, kCpuStats = 2;
inline constexpr std::uint32_t kStartOfTrace = 1, kEndOfTrace = 2;
inline constexpr std::uint32_t kCpu = 1, kEntries = 2, kOverrun = 3, kCommitOverrun = 4,
                               kBytesRead = 5, kDroppedEvents = 8, kReadEvents = 9;
}  // namespace ftrace_stats

namespace task_rename {
inline constexpr std::uint32_t kTid = 1, kComm = 2;
}  // namespace task_rename

}  // namespace wbscope::protos
