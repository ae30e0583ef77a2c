// SPDX-License-Identifier: Apache-2.0
// Tries work on hostile data in a child process first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace wbscope {

// Says which step comes next.
using Announce = std::function<void(std::uint32_t step)>;

// CPU time for all tries of a piece of work together.
class CpuBudget {
 public:
  explicit CpuBudget(double seconds) : left_(seconds) {}
  [[nodiscard]] bool is_spent() const noexcept { return left_ <= 0; }
  [[nodiscard]] double left() const noexcept { return left_; }
  void spend(double seconds) noexcept { left_ -= seconds; }

 private:
  double left_;
};

// Runs work in a child process with bounded memory and at most the time that is
// left, its output thrown away. Returns nothing when it ended well, else the
// step that it died in.
// Pre: the calling process has one thread; the budget is not spent.
// Raises: Error (exit 5) when no child can be made.
[[nodiscard]] std::optional<std::uint32_t> step_that_dies(
    const std::function<void(const Announce&)>& work, CpuBudget& budget);

}  // namespace wbscope
