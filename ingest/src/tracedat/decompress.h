// SPDX-License-Identifier: Apache-2.0
// Decompression of sections and chunks (zstd, zlib).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tracedat/trace_info.h"

namespace wbscope {

// The compression named in the header; nothing when the name is unknown.
[[nodiscard]] std::optional<Compression> compression_by_name(std::string_view name);

// One decompressor for each thread; keeps its state between calls.
class Decompressor {
 public:
  explicit Decompressor(Compression compression);
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // Fills out exactly. Returns an error text, empty when all went well.
  [[nodiscard]] std::string run(std::span<const std::byte> in, std::span<std::byte> out);

 private:
  struct State;
  Compression compression_;
  std::unique_ptr<State> state_;
};

}  // namespace wbscope
