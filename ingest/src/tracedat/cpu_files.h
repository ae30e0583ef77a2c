// SPDX-License-Identifier: Apache-2.0
// The files trace.dat.cpu0 ... that trace-cmd record writes while it runs, and
// leaves when it is killed.
#pragma once

#include "base/input_file.h"
#include "tracedat/trace_info.h"

namespace wbscope {

// Makes the buffers of info from the files beside the trace: pages as they
// came from the kernel, one file for each CPU and instance
// (FILE.cpuN, FILE.INSTANCE.cpuN). Notes the damage. Does nothing when there
// are no such files, or they are empty.
void attach_cpu_files(const InputFile& trace, TraceInfo& info);

}  // namespace wbscope
