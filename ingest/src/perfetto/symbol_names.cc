// SPDX-License-Identifier: Apache-2.0
// The names of addresses of kernel code.
#include "perfetto/symbol_names.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "sink/kallsyms.h"
#include "tracedat/trace_file.h"

namespace wbscope {

void SymbolNames::read() {
  try {
    text_ = read_kallsyms(file_, info_);
  } catch (const ParseError& error) {
    damage_ = error.message();  // without names the trace is as good as before
    return;
  }
  std::string_view rest = text_;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    if (const auto symbol = parse_kallsyms_line(rest.substr(0, end))) {
      places_.push_back({.address = symbol->address,
                         .begin = static_cast<std::uint32_t>(symbol->name.data() - text_.data()),
                         .bytes = static_cast<std::uint32_t>(symbol->name.size())});
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  // Of symbols at one address the first stays.
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return a.address < b.address; });
  const auto same = std::unique(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return a.address == b.address;
  });
  places_.erase(same, places_.end());
}

std::string SymbolNames::name(std::uint64_t address) {
  if (!has_any()) return {};
  std::call_once(is_read_, [this] { read(); });
  const auto above = std::upper_bound(
      places_.begin(), places_.end(), address,
      [](std::uint64_t wanted, const Place& place) { return wanted < place.address; });
  if (above == places_.begin()) return {};
  const Place& place = *(above - 1);
  const std::uint64_t offset = address - place.address;
  if (offset > KernelSymbol::kMaxOffset) return {};
  std::string name = replace_invalid_utf8(std::string_view(text_).substr(place.begin, place.bytes));
  if (offset == 0) return name;
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), offset, 16);
  return name.append("+0x").append(digits, end.ptr);
}

}  // namespace wbscope
