// SPDX-License-Identifier: Apache-2.0
// The ftrace events that Perfetto has messages of their own for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace wbscope {

struct KnownField {
  enum class Type : std::uint8_t { kNumber, kNumbers, kText };
  std::string_view name;
  std::uint32_t number = 0;
  Type type = Type::kNumber;
  bool is_symbol = false;  // an address; readers show the name interned for it
  bool is_needed = false;  // the tables that the event fills are wrong without it
};

struct KnownEvent {
  std::string_view name;
  std::uint32_t number = 0;    // in FtraceEvent
  bool fills_tables = false;   // readers make slices, counters or states of it
  std::vector<KnownField> fields;

  [[nodiscard]] const KnownField* field(std::string_view name) const noexcept;
};

[[nodiscard]] std::optional<KnownEvent> find_known_event(std::string_view name);

}  // namespace wbscope
