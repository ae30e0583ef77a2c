// SPDX-License-Identifier: Apache-2.0
// Work on hostile data in a child process, which may die of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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

struct ChildResult {
  std::optional<std::uint32_t> died_in;  // the step; nothing: the work ended well
  std::string bytes;                     // what the work returned
};

// A child process with bounded memory and at most the time that was left when it
// began, its output thrown away. It begins at once; several can work at a time.
class ChildWork {
 public:
  using Work = std::function<std::string(const Announce&)>;

  // Pre: the calling process has one thread; the budget is not spent.
  // Raises: Error (exit 5) when no child can be made.
  ChildWork(const Work& work, const CpuBudget& budget);
  ~ChildWork();  // ends one that has not been waited for
  ChildWork(ChildWork&& other) noexcept;
  ChildWork(const ChildWork&) = delete;
  ChildWork& operator=(const ChildWork&) = delete;
  ChildWork& operator=(ChildWork&&) = delete;

  // Waits for its end. Pre: called once.
  [[nodiscard]] ChildResult finish(CpuBudget& budget);

 private:
  void release() noexcept;

  pid_t child_ = -1;
  int result_ = -1;                // of a pipe: the bytes
  std::uint32_t* step_ = nullptr;  // in memory that both have
};

}  // namespace wbscope
