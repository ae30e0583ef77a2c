// SPDX-License-Identifier: Apache-2.0
// ^C and termination.
#include "base/interrupt.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace wbscope {
namespace {

std::atomic<bool> interrupted = false;  // threads look, too

constexpr long kGraceUs = 800'000;
constexpr int kInterruptedExit = static_cast<int>(Exit::kInterrupted);

// In place of a std::string: a handler reads it.
char temp_path[PATH_MAX];
std::atomic<bool> has_temp_path = false;
static_assert(std::atomic<bool>::is_always_lock_free);
pid_t owner = 0;  // a child that tries hostile work has the handlers, too

void on_signal(int) noexcept {
  if (interrupted.exchange(true)) return;
  const itimerval grace{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = kGraceUs}};
  ::setitimer(ITIMER_REAL, &grace, nullptr);
}

// Somebody does not come back to look, such as a sort in SQLite or a disk.
void on_grace_over(int) noexcept {
  if (has_temp_path && ::getpid() == owner) ::unlink(temp_path);
  ::_exit(kInterruptedExit);
}

}  // namespace

void catch_interrupts() noexcept {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);  // nohup stays nohup
  }
  owner = ::getpid();
  action.sa_handler = on_grace_over;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm_only{};
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarm_only, nullptr);
  action.sa_handler = SIG_IGN;
  // Both are told by the write that fails.
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

void remove_when_stopped(const char* path) noexcept {
  has_temp_path = false;
  const std::size_t bytes = std::strlen(path);
  if (bytes == 0 || bytes >= sizeof(temp_path)) return;
  std::memcpy(temp_path, path, bytes + 1);
  has_temp_path = true;
}

void open_standard_streams() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is this one, since those below are open.
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
  }
}

bool is_interrupted() noexcept { return interrupted; }

void throw_if_interrupted() {
  if (!is_interrupted()) return;
  throw Error(Exit::kInterrupted, {.slug = "interrupted",
                                   .object = "wbscope-ingest",
                                   .text = "stopped by a signal",
                                   .at = {},
                                   .have = {},
                                   .effect = "nothing was written",
                                   .fix = {}});
}

}  // namespace wbscope
