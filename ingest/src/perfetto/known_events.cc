// SPDX-License-Identifier: Apache-2.0
// The ftrace events that Perfetto has messages of their own for.
#include "perfetto/known_events.h"

#include <algorithm>
#include <iterator>

namespace wbscope {
namespace {

using enum KnownField::Type;

// An event, or a field of the event before it.
struct Line {
  bool is_event;
  std::string_view name;
  std::uint32_t number;
  KnownField::Type type;
  bool fills_tables;
  bool is_symbol;
  bool is_needed;
};

#define EVENT(name, number, fills_tables) {true, name, number, kNumber, fills_tables, false, false},
#define FIELD(name, number, type, is_symbol, is_needed) \
  {false, name, number, type, false, is_symbol, is_needed},
constexpr Line kLines[] = {
#include "perfetto/known_events.inc"
};
#undef FIELD
#undef EVENT

}  // namespace

const KnownField* KnownEvent::field(std::string_view wanted) const noexcept {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& each) { return each.name == wanted; });
  return found == fields.end() ? nullptr : &*found;
}

std::optional<KnownEvent> find_known_event(std::string_view name) {
  // Asked once for each format of a trace: no need to be fast.
  const auto* line = std::find_if(std::begin(kLines), std::end(kLines), [&](const Line& each) {
    return each.is_event && each.name == name;
  });
  if (line == std::end(kLines)) return std::nullopt;
  KnownEvent event{.name = line->name,
                   .number = line->number,
                   .fills_tables = line->fills_tables,
                   .fields = {}};
  while (++line != std::end(kLines) && !line->is_event) {
    event.fields.push_back({.name = line->name,
                            .number = line->number,
                            .type = line->type,
                            .is_symbol = line->is_symbol,
                            .is_needed = line->is_needed});
  }
  return event;
}

}  // namespace wbscope
