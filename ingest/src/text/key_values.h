// SPDX-License-Identifier: Apache-2.0
// Payloads that no print format fits: key=value, in any order.
#pragma once

#include <string_view>
#include <vector>

#include "sink/value_writer.h"

namespace wbscope {

struct KeyValue {
  std::string_view key;  // "" for text in front of the first key
  std::string_view value;
  std::string_view second;  // of "a=1(2)"
};

// Splits "bdi 8:0: a=1 b: 2, c=3(4) d=some text".
[[nodiscard]] std::vector<KeyValue> split_key_values(std::string_view payload);

// An integer in base, in hex with "0x", or per cent; else the text as it stands.
[[nodiscard]] Value typed_value(std::string_view text, std::uint32_t base = 10);

}  // namespace wbscope
