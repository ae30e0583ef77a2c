// SPDX-License-Identifier: Apache-2.0
// Which events of a trace are loaded.
#include "event_choice.h"

#include <fnmatch.h>

#include <algorithm>

namespace wbscope {

bool EventChoice::has(std::string_view system, std::string_view name) const {
  if (all_) return true;
  const std::string short_name(name);
  const std::string full_name = std::string(system) + ":" + short_name;
  return std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
    const auto colon = glob.find(':');
    if (colon == std::string::npos) return ::fnmatch(glob.c_str(), short_name.c_str(), 0) == 0;
    if (system.empty()) return ::fnmatch(glob.c_str() + colon + 1, short_name.c_str(), 0) == 0;
    return ::fnmatch(glob.c_str(), full_name.c_str(), 0) == 0;
  });
}

}  // namespace wbscope
