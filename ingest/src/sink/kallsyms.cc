// SPDX-License-Identifier: Apache-2.0
// Lines of /proc/kallsyms.
#include "sink/kallsyms.h"

#include <algorithm>
#include <charconv>

namespace wbscope {
namespace {

std::string_view take_word(std::string_view& line) {
  const auto end = std::find_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; });
  const auto word = line.substr(0, static_cast<std::size_t>(end - line.begin()));
  line.remove_prefix(word.size());
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return word;
}

}  // namespace

std::optional<KernelSymbol> parse_kallsyms_line(std::string_view line) {
  KernelSymbol symbol;
  const auto address = take_word(line);
  const auto [end, problem] =
      std::from_chars(address.data(), address.data() + address.size(), symbol.address, 16);
  if (problem != std::errc() || end != address.data() + address.size()) return std::nullopt;
  const auto type = take_word(line);
  if (type.size() != 1 || type == "A" || type == "a") return std::nullopt;
  symbol.name = take_word(line);
  if (line.starts_with('[') && line.ends_with(']')) symbol.module = line.substr(1, line.size() - 2);
  if (symbol.name.empty()) return std::nullopt;
  return symbol;
}

}  // namespace wbscope
