// SPDX-License-Identifier: Apache-2.0
// Tries work on hostile data in a child process first.
#include "base/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>

#include "base/error.h"

namespace wbscope {
namespace {

// AddressSanitizer reserves terabytes of addresses; GCC and Clang tell of it
// in different ways.
#if defined(__SANITIZE_ADDRESS__)
#define WBSCOPE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WBSCOPE_ASAN 1
#endif
#endif

#ifndef WBSCOPE_ASAN
constexpr rlim_t kMemoryBytes = rlim_t{512} << 20;
#endif

void limit(int resource, rlim_t value) noexcept {
  const rlimit bound{.rlim_cur = value, .rlim_max = value};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &bound);
}

double seconds(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

[[noreturn]] void run_child(int report, pid_t parent,
                            const std::function<void(const Announce&)>& work,
                            double cpu_seconds) {
  // It shares the parent's files and their locks, so it must not outlive it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(std::ceil(cpu_seconds)));
#ifndef WBSCOPE_ASAN
  limit(RLIMIT_AS, kMemoryBytes);
#endif
  int code = 0;
  try {
    work([report](std::uint32_t step) {
      if (::write(report, &step, sizeof(step)) != sizeof(step)) ::_exit(1);
    });
  } catch (...) {  // told by the exit code
    code = 1;
  }
  ::_exit(code);
}

}  // namespace

std::optional<std::uint32_t> step_that_dies(
    const std::function<void(const Announce&)>& work, CpuBudget& budget) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw_system_error("no-child", "wbscope-ingest", "make a pipe", errno, "free some resources");
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    const int problem = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw_system_error("no-child", "wbscope-ingest", "make a child process", problem,
                       "free some memory or processes");
  }
  if (child == 0) run_child(ends[1], parent, work, budget.left());
  ::close(ends[1]);
  std::uint32_t last = 0;
  while (true) {
    std::uint32_t step = 0;
    const ssize_t n = ::read(ends[0], &step, sizeof(step));
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof(step)) break;
    last = step;
  }
  ::close(ends[0]);
  int status = 0;
  rusage used{};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  budget.spend(seconds(used.ru_utime) + seconds(used.ru_stime));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return last;
}

}  // namespace wbscope
