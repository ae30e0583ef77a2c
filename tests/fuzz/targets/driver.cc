// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry point for the target that the build names.
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/resource.h>

#include "targets.h"

// libtraceevent 1.7 leaks a few bytes when it gives up on a format.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libtraceevent\n"; }

namespace {

// Formats are tried in a child process, which may die of them. libFuzzer must
// not take that for a crash of ours and save the input.
void in_child() {
  __sanitizer_set_death_callback(nullptr);
  const rlimit no_files{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_FSIZE, &no_files);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  return pthread_atfork(nullptr, nullptr, in_child);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wbscope::fuzz::WBSCOPE_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
