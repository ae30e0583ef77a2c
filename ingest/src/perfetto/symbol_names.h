// SPDX-License-Identifier: Apache-2.0
// SymbolNames: the names of addresses of kernel code, for several threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// /proc/kallsyms as the trace has it, read when the first name is asked for.
class SymbolNames {
 public:
  // The references outlive this object.
  SymbolNames(const InputFile& file, const TraceInfo& info) : file_(file), info_(info) {}

  // Whether there may be any.
  [[nodiscard]] bool has_any() const noexcept { return info_.kallsyms.has_value(); }

  // "name", or "name+0x1c" behind its start; "" when no symbol is near.
  [[nodiscard]] std::string name(std::uint64_t address);

  // What was wrong with the symbols, after the last name().
  [[nodiscard]] const std::optional<Message>& damage() const noexcept { return damage_; }

 private:
  struct Place {
    std::uint64_t address;
    std::uint32_t begin;  // of its name in text_
    std::uint32_t bytes;
  };
  void read();

  const InputFile& file_;
  const TraceInfo& info_;
  std::once_flag is_read_;
  std::string text_;
  std::vector<Place> places_;  // sorted
  std::optional<Message> damage_;
};

}  // namespace wbscope
