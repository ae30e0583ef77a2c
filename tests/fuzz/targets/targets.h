// SPDX-License-Identifier: Apache-2.0
// The fuzz targets, each a function of bytes: libFuzzer drives one of them
// (driver.cc), the unit tests replay inputs that once did harm (replay_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace wbscope::fuzz {

using Bytes = std::span<const std::byte>;

void container_v6(Bytes input);
void container_v7(Bytes input);
void options(Bytes input);
void page_walk(Bytes input);
void chunks(Bytes input);
void format_text(Bytes input);
void rows(Bytes input);
void sidecars(Bytes input);
void whole(Bytes input);
void converted(Bytes input);
void ftrace_text(Bytes input);
void records(Bytes input);
void page_writer(Bytes input);

// A property that must hold for any input; breaking it is a crash.
inline void require(bool holds) {
  if (!holds) std::abort();
}

// Takes the first byte, 0 at the end: the choices that go with an input.
inline std::uint8_t take_byte(Bytes& input) {
  if (input.empty()) return 0;
  const auto value = std::to_integer<std::uint8_t>(input.front());
  input = input.subspan(1);
  return value;
}

}  // namespace wbscope::fuzz
