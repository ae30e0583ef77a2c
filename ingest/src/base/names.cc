// SPDX-License-Identifier: Apache-2.0
// Names of tables and columns made from names in a trace.
#include "base/names.h"

#include <algorithm>
#include <cctype>

namespace wbscope {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The first of name, name_2, name_3 ... that is still free.
std::string unique_name(const std::string& wanted, NamesTaken& taken) {
  std::string name = wanted;
  for (int n = 2; !taken.insert(lower(name)).second; ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string out(name.substr(0, 128));
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') c = '_';
  }
  return out.empty() ? "_" : out;
}

std::string_view common_system(std::string_view system) {
  constexpr std::string_view kOurs = "wbscope";
  constexpr std::size_t kHexDigits = 8;
  const auto is_of = [](std::string_view text, std::string_view digits) {
    return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
  };
  const auto first = system.find('_');
  const auto last = system.rfind('_');
  if (first == last || system.substr(0, first) != kOurs) return system;
  const auto pid = system.substr(first + 1, last - first - 1);
  const auto hex = system.substr(last + 1);
  const bool ends = hex == "remote" || (hex.size() == kHexDigits && is_of(hex, "0123456789abcdef"));
  return ends && is_of(pid, "0123456789") ? kOurs : system;
}

CommonName common_name(std::string_view system, std::string_view name) {
  if (system != "synthetic") return {.system = common_system(system), .name = name};
  // Behind the third underscore.
  std::size_t end = std::string_view::npos;
  for (int count = 0; count < 3; ++count) {
    end = name.find('_', end + 1);
    if (end == std::string_view::npos) return {.system = system, .name = name};
  }
  const auto group = name.substr(0, end);
  const auto common = common_system(group);
  if (common == group) return {.system = system, .name = name};
  return {.system = common, .name = name.substr(end + 1)};
}

std::string event_table_name(std::string_view system, std::string_view name, NamesTaken& taken) {
  const std::string table = "ev_" + identifier(name);
  const bool clash = taken.contains(lower(table));
  return unique_name(clash ? "ev_" + identifier(system) + "__" + identifier(name) : table, taken);
}

NamesTaken lead_column_names() { return {"seq", "ts", "cpu", "tid", "buffer", "prev_seq", "repeats_count"}; }

std::string event_column_name(std::string_view field, NamesTaken& taken) {
  const std::string column = identifier(field);
  const bool clash = taken.contains(lower(column));
  return unique_name(clash ? "field_" + column : column, taken);
}

}  // namespace wbscope
