// SPDX-License-Identifier: Apache-2.0
// What a run folder may hold. A FIFO holds its reader for ever, a device may do
// anything when it is read, and a link out of the folder puts a file of the
// reader's machine into a database that people share.
#include "run_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "sidecar/sidecars.h"

namespace wbscope {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kTraces{
    "trace.dat",       "trace.txt",          "trace.pftrace", "trace.perfetto-trace",
    "trace.pftrace.gz", "trace.perfetto-trace.gz"};

const char* kind_name(fs::file_type type) {
  switch (type) {
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "";
  }
}

bool is_beneath(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

bool is_read_in_folder(const std::string& name) {
  return std::find(kTraces.begin(), kTraces.end(), name) != kTraces.end() ||
         name.starts_with("trace.dat.") || is_sidecar(name);
}

std::string strangeness(const std::string& path) {
  std::error_code problem;
  const auto status = fs::symlink_status(path, problem);
  if (!fs::is_symlink(status)) return kind_name(status.type());
  const fs::path file(path);
  const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path folder = fs::canonical(parent, problem);
  if (problem) return "in a folder that cannot be read";
  fs::path target = fs::canonical(file, problem);
  if (problem == std::errc::no_such_file_or_directory) {  // it leads to nothing
    target = fs::weakly_canonical(folder / fs::read_symlink(file, problem), problem);
  }
  if (problem) return "a symbolic link that leads to itself";
  if (!is_beneath(target, folder)) {
    return "a symbolic link to " + target.string() + ", outside of the folder";
  }
  return kind_name(fs::status(target, problem).type());
}

void check_run_folder(const std::string& folder) {
  std::error_code problem;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (is_read_in_folder(entry->path().filename().string())) paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const std::string found = strangeness(path.string());
    if (found.empty()) continue;
    throw Error(Exit::kInput, {.slug = "strange-file",
                               .object = path.string(),
                               .text = "is " + found + "; wanted a regular file",
                               .at = {},
                               .have = {},
                               .effect = "nothing was read or written",
                               .fix = "mv '" + path.string() + "' '" +
                                      (path.parent_path() / ("aside." + path.filename().string()))
                                          .string() +
                                      "'    # and put a copy of the file "
                                      "that was meant in its place"});
  }
}

}  // namespace wbscope
