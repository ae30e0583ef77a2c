// SPDX-License-Identifier: Apache-2.0
// Tries work on hostile data in a child process first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace wbscope {

// Says which step comes next.
using Announce = std::function<void(std::uint32_t step)>;

// Runs work in a child process with bounded time and memory, its output thrown
// away. Returns nothing when it ended well, else the step that it died in.
// Pre: the calling process has one thread.
// Raises: Error (exit 5) when no child can be made.
[[nodiscard]] std::optional<std::uint32_t> step_that_dies(
    const std::function<void(const Announce&)>& work);

}  // namespace wbscope
