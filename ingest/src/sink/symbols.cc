// SPDX-License-Identifier: Apache-2.0
// Names for addresses, from /proc/kallsyms.
#include "sink/symbols.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "sink/kallsyms.h"

namespace wbscope {

void write_symbols(Database& db, const AddressSet& addresses, std::string_view kallsyms) {
  struct Match {
    std::uint64_t address = 0;
    KernelSymbol symbol;
    bool found = false;
  };
  // The few addresses are sorted, and the many symbols looked at once each.
  std::vector<Match> wanted;
  for (const std::uint64_t address : addresses.all()) wanted.push_back({.address = address, .symbol = {}});
  std::sort(wanted.begin(), wanted.end(),
            [](const Match& a, const Match& b) { return a.address < b.address; });
  while (!kallsyms.empty()) {
    const auto end = std::min(kallsyms.find('\n'), kallsyms.size());
    const auto symbol = parse_kallsyms_line(kallsyms.substr(0, end));
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
    if (!symbol) continue;
    // It is a candidate for the first address at or above it; those behind
    // take over below. Of symbols at one address the first stays.
    const auto at = std::lower_bound(
        wanted.begin(), wanted.end(), symbol->address,
        [](const Match& match, std::uint64_t address) { return match.address < address; });
    if (at == wanted.end()) continue;
    if (!at->found || at->symbol.address < symbol->address) {
      at->symbol = *symbol;
      at->found = true;
    }
  }
  Statement insert(db, "INSERT INTO symbol VALUES (?, ?, ?, ?)");
  const Match* last = nullptr;
  for (auto& match : wanted) {
    if (!match.found && last != nullptr) {
      match.symbol = last->symbol;
      match.found = true;
    }
    if (!match.found) continue;
    last = &match;
    const std::uint64_t offset = match.address - match.symbol.address;
    if (offset > KernelSymbol::kMaxOffset) continue;
    const std::string name = replace_invalid_utf8(match.symbol.name);
    const std::string module = replace_invalid_utf8(match.symbol.module);
    insert.bind(1, static_cast<std::int64_t>(match.address));
    insert.bind_text(2, name);
    insert.bind(3, static_cast<std::int64_t>(offset));
    if (module.empty()) {
      insert.bind_null(4);
    } else {
      insert.bind_text(4, module);
    }
    insert.run();
  }
}

}  // namespace wbscope
