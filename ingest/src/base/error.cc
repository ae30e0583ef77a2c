// SPDX-License-Identifier: Apache-2.0
// Texts of errors.
#include "base/error.h"

#include <cstdio>
#include <cstring>

namespace wbscope {

std::string ParseError::place(const std::string& section, std::uint64_t offset,
                              std::optional<std::uint32_t> cpu) {
  char hex[32];
  std::snprintf(hex, sizeof(hex), "0x%llx", static_cast<unsigned long long>(offset));
  std::string text;
  if (cpu) text += "cpu " + std::to_string(*cpu) + ", ";
  return text + section + ", file offset " + hex;
}

void throw_system_error(const std::string& slug, const std::string& object,
                        const std::string& action, int error_number, const std::string& fix) {
  throw Error(Exit::kEnvironment, {.slug = slug,
                                   .object = object,
                                   .text = "cannot " + action + ": " + std::strerror(error_number),
                                   .at = {},
                                   .have = {},
                                   .effect = {},
                                   .fix = fix});
}

}  // namespace wbscope
