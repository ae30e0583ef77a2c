// SPDX-License-Identifier: Apache-2.0
// The trace that a SRC names.
#include "trace_source.h"

#include <filesystem>

#include "base/error.h"
#include "run_folder.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraceName = "trace.dat";
constexpr const char* kTextName = "trace.txt";

}  // namespace

std::string trace_path(const std::string& source) {
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) return source;
  check_run_folder(source);
  const fs::path trace = fs::path(source) / kTraceName;
  if (fs::exists(trace, ignored)) return trace.string();
  const fs::path text = fs::path(source) / kTextName;
  if (fs::exists(text, ignored)) return text.string();
  if (fs::exists(trace.string() + ".cpu0", ignored)) {
    throw Error(Exit::kInput, {.slug = "killed-recorder",
                               .object = source,
                               .text = "found the pages of a recorder that was killed "
                                       "(trace.dat.cpu0 ...), and no trace.dat with their formats",
                               .at = {},
                               .have = {},
                               .effect = "nothing was written",
                               .fix = "on the recorded machine, before it boots another kernel: "
                                      "trace-cmd restore -c -o " + trace.string()});
  }
  throw Error(Exit::kInput, {.slug = "no-trace-in-folder",
                             .object = source,
                             .text = "found no file trace.dat in this folder",
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = "record with: trace-cmd record -o " + trace.string() + " ..."});
}

TraceInfo read_info(const InputFile& file) {
  try {
    return read_trace_info(file);
  } catch (ParseError& error) {
    error.message().object = file.path();
    if (error.message().effect.empty()) error.message().effect = "nothing was written";
    if (error.message().fix.empty()) error.message().fix = "record or copy the trace again";
    throw;
  }
}

// Since kernel 6.9 sub-buffers of the ring buffer
// may be larger, and trace-cmd writes their size in its place; on machines that
// have one size only, that is known better.
std::uint32_t machine_page_bytes(const TraceInfo& info) {
  constexpr std::uint32_t kUsual = 4096;
  const std::string machine = info.uname.substr(info.uname.find_last_of(' ') + 1);
  for (const char* name : {"x86_64", "i386", "i486", "i586", "i686", "s390x", "riscv64"}) {
    if (machine == name) return kUsual;
  }
  return info.page_bytes;
}

void throw_nothing_readable(const InputFile& file, const TraceInfo& info) {
  Message message = info.damage.empty()
                        ? Message{.slug = "no-buffers",
                                  .object = {},
                                  .text = "found no recorded buffer in the file",
                                  .at = {},
                                  .have = {},
                                  .effect = {},
                                  .fix = {}}
                        : info.damage.front();
  message.object = file.path();
  message.effect = "no event could be read; nothing was written";
  message.fix = "record or copy the trace again (a recorder that was killed leaves "
                "trace.dat.cpu* files: trace-cmd restore)";
  throw Error(Exit::kInput, message);
}

}  // namespace wbscope
