// SPDX-License-Identifier: Apache-2.0
// Which events of a trace are loaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wbscope {

struct EventName {
  std::string system;
  std::string name;
};

class EventChoice {
 public:
  // globs: on "system:name" or "name"; one that is a system's name means all of it.
  EventChoice(std::vector<std::string> globs, bool all) : globs_(std::move(globs)), all_(all) {}

  // system "" is one that the trace does not tell: any.
  [[nodiscard]] bool has(std::string_view system, std::string_view name) const;

 private:
  std::vector<std::string> globs_;
  bool all_;
};

// Raises: Error (exit 2) for a glob that matches none of these, with the nearest names.
void require_matches(const std::vector<std::string>& globs, const std::vector<EventName>& events);

}  // namespace wbscope
