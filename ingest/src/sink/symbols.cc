// SPDX-License-Identifier: Apache-2.0
// Names for addresses, from /proc/kallsyms.
#include "sink/symbols.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace wbscope {
namespace {

// Further above its symbol than any function is long: no code of that symbol.
constexpr std::uint64_t kMaxOffset = 128u << 10;

struct Symbol {
  std::uint64_t address = 0;
  std::string_view name;
  std::string_view module;  // "" in the kernel itself
};

std::string_view take_word(std::string_view& line) {
  const auto end = std::min(line.find_first_of(" \t"), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(end);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return word;
}

// "ffffffff81000000 T _stext" or "ffffffffc0000000 t func\t[module]".
std::optional<Symbol> parse_line(std::string_view line) {
  Symbol symbol;
  const auto address = take_word(line);
  const auto [end, problem] =
      std::from_chars(address.data(), address.data() + address.size(), symbol.address, 16);
  if (problem != std::errc() || end != address.data() + address.size()) return std::nullopt;
  const auto type = take_word(line);
  // Absolute symbols are numbers, not places.
  if (type.size() != 1 || type == "A" || type == "a") return std::nullopt;
  symbol.name = take_word(line);
  if (line.starts_with('[') && line.ends_with(']')) symbol.module = line.substr(1, line.size() - 2);
  if (symbol.name.empty()) return std::nullopt;
  return symbol;
}

}  // namespace

void write_symbols(Database& db, const AddressSet& addresses, std::string_view kallsyms) {
  struct Match {
    std::uint64_t address = 0;
    Symbol symbol;
    bool found = false;
  };
  // The few addresses are sorted, and the many symbols looked at once each.
  std::vector<Match> wanted;
  for (const std::uint64_t address : addresses.all()) wanted.push_back({.address = address, .symbol = {}});
  std::sort(wanted.begin(), wanted.end(),
            [](const Match& a, const Match& b) { return a.address < b.address; });
  while (!kallsyms.empty()) {
    const auto end = std::min(kallsyms.find('\n'), kallsyms.size());
    const auto symbol = parse_line(kallsyms.substr(0, end));
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
    if (offset > kMaxOffset) continue;
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
