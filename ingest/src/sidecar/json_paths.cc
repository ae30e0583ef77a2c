// SPDX-License-Identifier: Apache-2.0
// Paths of the values in a JSON document.
#include "sidecar/json_paths.h"

#include <algorithm>
#include <vector>

namespace wbscope {
namespace {

constexpr std::size_t kIndexBytes = 10;  // "[1234567]"

// Past the string that begins there.
std::size_t after_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

// Only a key has a colon behind it.
bool is_key(std::string_view json, std::size_t end) {
  const auto next = json.find_first_not_of(" \t\r\n", end);
  return next != std::string_view::npos && json[next] == ':';
}

}  // namespace

std::size_t longest_path(std::string_view json) {
  std::vector<std::size_t> before;  // bytes of the path to each object and array that is open
  std::size_t path = 1;
  std::size_t longest = path;
  for (std::size_t at = 0; at < json.size();) {
    const char c = json[at];
    if (c == '"') {
      const std::size_t end = after_string(json, at);
      if (!before.empty() && is_key(json, end)) path = before.back() + 1 + end - at;
      at = end;
    } else {
      if (c == '{' || c == '[') before.push_back(path);
      if (c == '[') path += kIndexBytes;
      if ((c == '}' || c == ']') && !before.empty()) {
        path = before.back();
        before.pop_back();
      }
      ++at;
    }
    longest = std::max(longest, path);
  }
  return longest;
}

}  // namespace wbscope
