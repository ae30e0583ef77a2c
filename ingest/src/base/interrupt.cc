// SPDX-License-Identifier: Apache-2.0
// ^C and termination.
#include "base/interrupt.h"

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
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void throw_if_interrupted() {
  if (interrupted == 0) return;
  throw Error(Exit::kInterrupted, {.slug = "interrupted",
                                   .object = "wbscope-ingest",
                                   .text = "stopped by a signal",
                                   .at = {},
                                   .have = {},
                                   .effect = "nothing was written",
                                   .fix = {}});
}

}  // namespace wbscope
