// SPDX-License-Identifier: Apache-2.0
// The trace that a SRC names, for every job that reads one.
#pragma once

#include <cstdint>
#include <string>

#include "base/input_file.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// The trace of a run folder, or the file itself. Raises: Error (exit 3) when
// the folder has none, or when a file that is read in it is no regular file of it.
[[nodiscard]] std::string trace_path(const std::string& source);

// As read_trace_info(), with all that a message has to say.
[[nodiscard]] TraceInfo read_info(const InputFile& file);

// The page size of the machine.
[[nodiscard]] std::uint32_t machine_page_bytes(const TraceInfo& info);

// Nothing could be read at all: say why, with the first damage as the cause.
[[noreturn]] void throw_nothing_readable(const InputFile& file, const TraceInfo& info);

}  // namespace wbscope
