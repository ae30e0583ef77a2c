// SPDX-License-Identifier: Apache-2.0
// ^C and termination, turned into an Error so that files are cleaned up.
#pragma once

namespace wbscope {

// Installs handlers for SIGINT, SIGTERM and SIGHUP, and ignores SIGPIPE: a
// reader of messages that leaves early must not leave files behind.
void catch_interrupts() noexcept;

// A signal that is not heard within this time ends the program at once. The file
// at path, the temporary one of an output, is removed then; "" for none.
void remove_when_stopped(const char* path) noexcept;

// Opens /dev/null in place of standard streams that the caller has closed, so
// that no file gets their numbers, and messages with them.
void open_standard_streams() noexcept;

// Whether a signal has come.
[[nodiscard]] bool is_interrupted() noexcept;

// Raises: Error (exit 130) once a signal has come.
void throw_if_interrupted();

}  // namespace wbscope
