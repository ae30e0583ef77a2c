// SPDX-License-Identifier: Apache-2.0
// A folder in memory for as long as the process lives.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "targets.h"

namespace wbscope::fuzz {

class Scratch {
 public:
  Scratch() {
    std::string pattern = "/dev/shm/wbscope-fuzz-XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace wbscope::fuzz
