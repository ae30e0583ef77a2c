// SPDX-License-Identifier: Apache-2.0
// A share of a trace's formats as plans, and the bytes in which a child process
// that read them hands them over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.h"
#include "format/event_catalog.h"

namespace wbscope {

// How much of a format libtraceevent is shown.
enum class Trust : std::uint8_t { kWhole, kWithoutPrint, kNothing };

constexpr std::uint32_t kMaxRecordBytes = 1u << 16;

struct PlacedPlan {
  std::uint32_t format = 0;  // of TraceInfo::formats
  EventPlan plan;
};

struct PlacedCommon {
  std::uint32_t format = 0;
  CommonFields fields;
};

struct FormatShare {
  PageLayout page;
  std::optional<PlacedCommon> common;  // of its first format that was read
  std::vector<PlacedPlan> plans;
};

// Every step-th format, so that shares take about as long as each other: the
// formats of a subsystem, which are alike, stand together.
struct Stride {
  std::size_t first = 0;
  std::size_t step = 1;
};

// Announces each format by its number, and header_page by their count, before
// libtraceevent is shown it, for some text makes that crash.
// Plans of FormatStatus::kRaw have no fields yet.
// Pre: trust has one value a format, then one for header_page.
[[nodiscard]] FormatShare read_formats(const TraceInfo& info, const std::vector<Trust>& trust,
                                       Stride stride, const Announce& announce);

// Without the text and the system of the events, which the formats tell.
[[nodiscard]] std::string to_bytes(const FormatShare& share);

// Nothing where these are no bytes of to_bytes() of a share of so many formats,
// or where a plan would read outside of its record.
[[nodiscard]] std::optional<FormatShare> to_share(std::string_view bytes, std::size_t formats);

}  // namespace wbscope
