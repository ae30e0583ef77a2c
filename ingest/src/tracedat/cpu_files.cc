// SPDX-License-Identifier: Apache-2.0
// The files that a killed trace-cmd record leaves.
#include "tracedat/cpu_files.h"

#include <sys/resource.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

namespace wbscope {
namespace {

namespace fs = std::filesystem;

struct CpuFile {
  std::string instance;
  std::uint32_t cpu = 0;
};

// "trace.dat.cpu3" and "trace.dat.INSTANCE.cpu3", without "trace.dat".
std::optional<CpuFile> parse_suffix(std::string_view suffix) {
  constexpr std::string_view kCpu = ".cpu";
  const auto at = suffix.rfind(kCpu);
  if (at == std::string_view::npos) return std::nullopt;
  CpuFile file;
  const auto digits = suffix.substr(at + kCpu.size());
  const auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), file.cpu);
  if (problem != std::errc() || end != digits.data() + digits.size() || file.cpu >= kMaxCpus) {
    return std::nullopt;
  }
  const auto instance = suffix.substr(0, at);
  if (!instance.empty()) {
    if (!instance.starts_with('.') || instance.size() == 1) return std::nullopt;
    file.instance = instance.substr(1);
  }
  return file;
}

// A machine with many CPUs has more of these files than a process may open.
void allow_open_files() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void attach_cpu_files(const InputFile& trace, TraceInfo& info) {
  const fs::path path(trace.path());
  const std::string name = path.filename().string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::map<std::string, std::map<std::uint32_t, fs::path>> found;  // "" sorts first
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string other = entry.path().filename().string();
    if (!other.starts_with(name) || !entry.is_regular_file(ignored)) continue;
    const auto file = parse_suffix(std::string_view(other).substr(name.size()));
    if (file) found[file->instance][file->cpu] = entry.path();
  }
  if (found.empty()) return;
  allow_open_files();

  std::vector<BufferInfo> buffers;
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  for (const auto& [instance, cpus] : found) {
    BufferInfo buffer;
    buffer.name = instance;
    buffer.page_bytes = info.page_bytes;
    for (const auto& [cpu, file_path] : cpus) {
      if (++files > kMaxRegions) break;
      auto file = std::make_shared<const InputFile>(file_path.string());
      bytes += file->size();
      const std::uint64_t size = file->size();
      buffer.regions.push_back({.cpu = cpu, .offset = 0, .bytes = size, .file = std::move(file)});
    }
    buffers.push_back(std::move(buffer));
  }
  if (bytes == 0) return;
  info.buffers = std::move(buffers);
  info.damage.push_back({.slug = "killed-recorder",
                         .object = {},
                         .text = "the recorder did not finish the file; its pages were read from " +
                                 std::to_string(files) + " files " + name + "*.cpu* beside it",
                         .at = ParseError::place("INITIAL FORMAT", 0, std::nullopt),
                         .have = {},
                         .effect = {},
                         .fix = {}});
}

}  // namespace wbscope
