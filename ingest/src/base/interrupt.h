// SPDX-License-Identifier: Apache-2.0
// ^C and termination, turned into an Error so that files are cleaned up.
#pragma once

namespace wbscope {

// Installs handlers for SIGINT and SIGTERM.
void catch_interrupts() noexcept;

// Raises: Error (exit 130) once a signal has come.
void throw_if_interrupted();

}  // namespace wbscope
