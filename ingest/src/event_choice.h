// SPDX-License-Identifier: Apache-2.0
// Which events of a trace are loaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wbscope {

class EventChoice {
 public:
  // globs: on "system:name" or "name".
  EventChoice(std::vector<std::string> globs, bool all) : globs_(std::move(globs)), all_(all) {}

  // system "" is one that the trace does not tell: any.
  [[nodiscard]] bool has(std::string_view system, std::string_view name) const;

 private:
  std::vector<std::string> globs_;
  bool all_;
};

}  // namespace wbscope
