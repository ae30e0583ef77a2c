// SPDX-License-Identifier: Apache-2.0
// Event formats of a trace as plans for reading records; the only user of
// libtraceevent, which sees format text and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tracedat/page_walker.h"
#include "tracedat/trace_info.h"

namespace wbscope {

enum class FieldKind : std::uint8_t {
  kInteger,      // size 1, 2, 4 or 8
  kText,         // char[n], ends at a NUL or at n
  kRestText,     // char[] at the end of the record
  kDynText,      // __data_loc char[]
  kRelText,      // __rel_loc char[]
  kArray,        // integers, element_bytes each
  kRestArray,    // integers up to the end of the record
  kDynArray,     // __data_loc of integers
  kRelArray,     // __rel_loc of integers
  kBytes,        // anything else, as a blob
  kDynBytes,     // __data_loc of anything else
  kRelBytes,     // __rel_loc of anything else
  kPrintk,       // no bytes of its own: the text of a binary printk
};

// Bytes that the kernel prints as one text of their own.
enum class Rendering : std::uint8_t { kPlain, kBitmask, kCpumask, kSockaddr };

// Where a field lies in a record and how it is read.
struct FieldPlan {
  std::string name;    // the kernel's
  std::string column;  // of the table
  std::string type;    // the kernel's C type
  FieldKind kind = FieldKind::kInteger;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t element_bytes = 1;
  bool is_signed = false;
  Rendering rendering = Rendering::kPlain;
  bool is_symbol = false;  // addresses of kernel code

  // Bytes that a record needs to have the whole field.
  [[nodiscard]] std::uint32_t end() const noexcept { return offset + bytes; }
};

struct EnumLabel {
  std::string field;
  std::int64_t value = 0;
  std::string label;
  bool is_flag = false;
};

enum class FormatStatus : std::uint8_t {
  kParsed,
  kPartial,
  kRaw,
  kNone,      // the place for records whose id no format has
  kText,      // values came by name; ids, offsets and sizes are not known
  kPerfetto,  // the same, out of a Perfetto trace
};

struct EventPlan {
  std::uint32_t id = 0;
  std::string system;
  std::string name;
  std::string table;  // ev_<name>, or ev_<system>__<name> on a clash
  FormatStatus status = FormatStatus::kParsed;
  std::string text;
  std::uint32_t min_bytes = 0;  // of a record that has all fields
  std::vector<FieldPlan> fields;
  std::vector<EnumLabel> labels;

  [[nodiscard]] std::string full_name() const { return system.empty() ? name : system + ":" + name; }
};

// Where the fields common to all events lie.
struct CommonFields {
  std::uint32_t type_offset = 0;
  std::uint32_t type_bytes = 2;
  std::uint32_t pid_offset = 4;
  std::uint32_t end = 8;  // bytes that tell type and pid
  std::uint32_t payload = 8;  // the first byte behind all common fields
  std::optional<std::uint32_t> flags_offset = 2;  // one byte each
  std::optional<std::uint32_t> preempt_offset = 3;
};

struct EventCatalog {
  PageLayout page;
  CommonFields common;
  std::vector<EventPlan> events;  // in the order of the file
  std::optional<std::uint32_t> unknown;  // the plan with FormatStatus::kNone, the last one

  [[nodiscard]] bool has_formats() const noexcept { return events.size() > (unknown ? 1 : 0); }
  // trace-cmd writes the formats of all events where it was told to record none
  // (function tracers, extract) or all: then they do not say what was recorded.
  [[nodiscard]] bool has_all_formats() const;
};

// Which events can have been recorded, with the records of each. Where the formats
// do not say it, those of the systems that records came of; with all events on, as
// timers tell, which fire in any trace, all.
[[nodiscard]] std::vector<bool> recordable_events(const EventCatalog& catalog,
                                                  const std::vector<std::uint64_t>& counted);

// Gives these events ("system:name") a column common_flags: in which context one fired.
using EventsWithFlags = std::set<std::string, std::less<>>;
void add_flags(const EventsWithFlags& events, EventCatalog& catalog);

// Never raises for a format: what libtraceevent cannot parse becomes
// FormatStatus::kRaw with a column "payload".
[[nodiscard]] EventCatalog build_event_catalog(const TraceInfo& info);

}  // namespace wbscope
