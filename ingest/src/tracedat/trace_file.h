// SPDX-License-Identifier: Apache-2.0
// Opens a trace.dat of version 6 or 7 and describes it.
#pragma once

#include "base/input_file.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// Reads header, options, formats and the places of all pages.
// Damage that leaves something readable is noted in TraceInfo::damage.
// Raises: ParseError when there is nothing to read events with.
[[nodiscard]] TraceInfo read_trace_info(const InputFile& file);

// /proc/kallsyms of the traced machine; "" when the file has none.
// Raises: ParseError when it is damaged.
[[nodiscard]] std::string read_kallsyms(const InputFile& file, const TraceInfo& info);

// The parts of it for each version (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)).
// offset is the first byte behind the fields that both versions share.
void read_container_v6(const InputFile& file, std::uint64_t offset, TraceInfo& info);
void read_container_v7(const InputFile& file, std::uint64_t offset, TraceInfo& info);

}  // namespace wbscope
