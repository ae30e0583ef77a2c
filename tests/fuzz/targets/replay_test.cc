// SPDX-License-Identifier: Apache-2.0
// Runs each fuzz target on the inputs that once did harm, and on bytes that
// need no harm to be odd. A broken property aborts the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "targets.h"

namespace wbscope::fuzz {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  void (*run)(Bytes);
};

const Target kTargets[] = {
    {"container_v6", container_v6}, {"container_v7", container_v7}, {"options", options},
    {"page_walk", page_walk},       {"chunks", chunks},             {"format_text", format_text},
    {"rows", rows},                 {"sidecars", sidecars},         {"whole", whole},
    {"ftrace_text", ftrace_text},   {"records", records},
    {"converted", converted},       {"page_writer", page_writer},
};

void run(const Target& target, const std::string& input) {
  target.run(std::as_bytes(std::span(input.data(), input.size())));
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, Regressions) {
  const fs::path folder = fs::path(WBSCOPE_REGRESSIONS_DIR) / GetParam().name;
  if (!fs::is_directory(folder)) return;  // nothing was ever found
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream in(entry.path(), std::ios::binary);
    run(GetParam(), {std::istreambuf_iterator<char>(in), {}});
  }
}

TEST_P(Replay, OddBytes) {
  run(GetParam(), {});
  for (const char fill : {'\0', '\1', '\x7f', '\xff'}) {
    for (const std::size_t bytes : {1, 2, 3, 8, 17, 64, 600}) {
      run(GetParam(), std::string(bytes, fill));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, ::testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace

TEST(Replay, EveryFolderHasATarget) {
  for (const auto& entry : fs::directory_iterator(WBSCOPE_REGRESSIONS_DIR)) {
    const auto name = entry.path().filename().string();
    EXPECT_TRUE(std::any_of(std::begin(kTargets), std::end(kTargets),
                            [&](const Target& target) { return name == target.name; }))
        << name;
  }
}

}  // namespace wbscope::fuzz
