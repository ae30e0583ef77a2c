// SPDX-License-Identifier: Apache-2.0
// Paths of the values in a JSON document, which stand in each row of json_tree().
#pragma once

#include <cstddef>
#include <string_view>

namespace wbscope {

// Bytes of the longest path ("$.jobs[0].error"), or some more. Pre: the document is valid.
[[nodiscard]] std::size_t longest_path(std::string_view json);

}  // namespace wbscope
