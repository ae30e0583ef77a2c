// SPDX-License-Identifier: Apache-2.0
// Reporter: what the program tells on stderr, as text or as JSON lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace wbscope {

// With json_lines, one object a line: {"type": "progress" | "warning" |
// "error" | "done", ...}; the front end reads them.
class Reporter {
 public:
  explicit Reporter(bool json_lines) : json_lines_(json_lines) {}

  // Raises: Error (exit 130) when the front end that reads the lines has gone.
  void progress(std::uint64_t done_bytes, std::uint64_t total_bytes) const;
  void warning(const Message& message) const { say("warning", message); }
  void error(const Message& message) const { say("error", message); }
  void done(const std::string& output, std::uint64_t events, std::uint64_t loaded,
            bool damaged) const;

 private:
  void say(std::string_view type, const Message& message) const;
  bool json_lines_;
};

}  // namespace wbscope
