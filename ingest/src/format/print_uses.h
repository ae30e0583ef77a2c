// SPDX-License-Identifier: Apache-2.0
// What a print format does with its fields, read from its text.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace wbscope {

// Names of the fields that a print format shows in a way that their C type
// does not tell.
struct PrintUses {
  std::set<std::string, std::less<>> bitmasks;   // __get_bitmask()
  std::set<std::string, std::less<>> cpumasks;   // __get_cpumask()
  std::set<std::string, std::less<>> sockaddrs;  // __get_sockaddr()
  std::set<std::string, std::less<>> symbols;    // %ps, %pS, %pf, %pF, %pB
};

// format is the whole text of a format file. libtraceevent keeps neither the
// helper that a dynamic array was read with nor which argument a conversion
// belongs to, so this reads the text itself.
[[nodiscard]] PrintUses scan_print(std::string_view format);

}  // namespace wbscope
