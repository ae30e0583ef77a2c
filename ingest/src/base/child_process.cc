// SPDX-License-Identifier: Apache-2.0
// Work on hostile data in a child process, which may die of it.
#include "base/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <string_view>
#include <utility>

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

constexpr rlim_t kMemoryBytes = rlim_t{512} << 20;

void limit(int resource, rlim_t value) noexcept {
  const rlimit bound{.rlim_cur = value, .rlim_max = value};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &bound);
}

double seconds(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// What a pipe may have without asking for more: no child waits for its reader.
constexpr int kPipeBytes = 1 << 20;

bool write_whole(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

[[noreturn]] void run_child(int result, std::uint32_t* step, pid_t parent,
                            const ChildWork::Work& work, double cpu_seconds) {
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
    const std::string bytes = work([step](std::uint32_t next) {
      // Before what dies of it: volatile, so that it is not put off.
      *static_cast<volatile std::uint32_t*>(step) = next;
    });
    if (!write_whole(result, bytes)) code = 1;
  } catch (...) {  // told by the exit code
    code = 1;
  }
  ::_exit(code);
}

// All that comes, up to its end or one block more than a child can have made.
std::string read_whole(int from) {
  std::string bytes;
  char block[1 << 16];
  while (bytes.size() <= kMemoryBytes) {
    const ssize_t n = ::read(from, block, sizeof(block));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.append(block, static_cast<std::size_t>(n));
  }
  return bytes;
}

}  // namespace

ChildWork::ChildWork(const Work& work, const CpuBudget& budget) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw_system_error("no-child", "wbscope-ingest", "make a pipe", errno, "free some resources");
  }
  ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
  result_ = ends[0];
  // Shared, so that telling a step costs nobody a system call.
  void* shared = ::mmap(nullptr, sizeof(*step_), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t parent = ::getpid();
  if (shared != MAP_FAILED) {
    step_ = static_cast<std::uint32_t*>(shared);
    child_ = ::fork();
  }
  if (child_ < 0) {
    const int problem = errno;
    ::close(ends[1]);
    release();
    throw_system_error("no-child", "wbscope-ingest", "make a child process", problem,
                       "free some memory or processes");
  }
  if (child_ == 0) run_child(ends[1], step_, parent, work, budget.left());
  ::close(ends[1]);
}

ChildWork::~ChildWork() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  release();
}

void ChildWork::release() noexcept {
  if (result_ >= 0) ::close(std::exchange(result_, -1));
  if (step_ != nullptr) ::munmap(std::exchange(step_, nullptr), sizeof(*step_));
}

ChildWork::ChildWork(ChildWork&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      result_(std::exchange(other.result_, -1)),
      step_(std::exchange(other.step_, nullptr)) {}

ChildResult ChildWork::finish(CpuBudget& budget) {
  ChildResult result{.died_in = std::nullopt, .bytes = read_whole(result_)};
  // One that writes without end dies of its pipe.
  ::close(std::exchange(result_, -1));
  int status = 0;
  rusage used{};
  while (::wait4(child_, &status, 0, &used) < 0 && errno == EINTR) {
  }
  child_ = -1;
  budget.spend(seconds(used.ru_utime) + seconds(used.ru_stime));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    result = {.died_in = *static_cast<volatile std::uint32_t*>(step_), .bytes = {}};
  }
  return result;
}

}  // namespace wbscope
