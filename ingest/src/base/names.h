// SPDX-License-Identifier: Apache-2.0
// Names of tables and columns made from names in a trace.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace wbscope {

// Names in use, in lower case: SQLite compares names without regard to case.
using NamesTaken = std::set<std::string>;

// Letters, digits and '_'; a name from a file never reaches SQL otherwise.
[[nodiscard]] std::string identifier(std::string_view name);

// The probes of one recording are in a group of its own, wbscope_<pid>_<hex>;
// every run calls it wbscope. Other systems are called as they are.
[[nodiscard]] std::string_view common_system(std::string_view system);

// Its synthetic events are synthetic:wbscope_<pid>_<hex>_<name>: wbscope:<name>.
struct CommonName {
  std::string_view system;
  std::string_view name;
};
[[nodiscard]] CommonName common_name(std::string_view system, std::string_view name);

// ev_<name>, or ev_<system>__<name> on a clash.
[[nodiscard]] std::string event_table_name(std::string_view system, std::string_view name,
                                           NamesTaken& taken);

// What the columns of an event start from: those that every ev_ table has.
[[nodiscard]] NamesTaken lead_column_names();

// The field's own name, or field_<name> on a clash.
[[nodiscard]] std::string event_column_name(std::string_view field, NamesTaken& taken);

}  // namespace wbscope
