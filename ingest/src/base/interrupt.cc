// SPDX-License-Identifier: Apache-2.0
// ^C and termination.
#include "base/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace wbscope {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int) noexcept { interrupted = 1; }

}  // namespace

void catch_interrupts() noexcept {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);  // nohup stays nohup
  }
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

void open_standard_streams() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is this one, since those below are open.
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
  }
}

bool is_interrupted() noexcept { return interrupted != 0; }

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
