// SPDX-License-Identifier: Apache-2.0
// UTF-8 checks: SQLite text and protobuf strings must be UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace wbscope {

// Well-formed UTF-8 without surrogates (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

// A copy with U+FFFD for each byte that is not part of well-formed UTF-8.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

}  // namespace wbscope
