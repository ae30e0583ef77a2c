// SPDX-License-Identifier: Apache-2.0
// Lines of the file task_io.
#include "sidecar/task_io.h"

#include <algorithm>

#include "sidecar/lines.h"

namespace wbscope {
namespace {

constexpr std::string_view kName = "comm=";
constexpr std::size_t kTid = 1;
static_assert(kTaskIoKeys[kTid] == "tid");

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] == '\\' && (next == '\\' || next == 'n')) {
      out += next == 'n' ? '\n' : '\\';
      ++at;
    } else {
      out += text[at];
    }
  }
  return out;
}

bool read_value(std::string_view word, TaskIo& thread) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const auto* const key =
      std::find(kTaskIoKeys.begin(), kTaskIoKeys.end(), word.substr(0, equals));
  if (key == kTaskIoKeys.end()) return true;
  auto& value = thread.values[static_cast<std::size_t>(key - kTaskIoKeys.begin())];
  value = integer(word.substr(equals + 1));
  return value.has_value();
}

// Whether the line is whole.
bool read_line(std::string_view line, TaskIo& thread) {
  thread.sample = take_field(line);
  if (thread.sample != "start" && thread.sample != "end" && thread.sample != "exit") return false;
  while (!line.empty() && !line.starts_with(kName)) {
    if (!read_value(take_field(line), thread)) return false;
  }
  if (line.empty() || !thread.values[kTid]) return false;
  thread.comm = unescaped(line.substr(kName.size()));
  return true;
}

}  // namespace

TextProblems parse_task_io(std::string_view text,
                           const std::function<void(const TaskIo&)>& on_thread) {
  TextProblems problems;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.empty()) return;
    TaskIo thread;
    if (!read_line(line, thread)) return problems.add(number);
    on_thread(thread);
  });
  return problems;
}

}  // namespace wbscope
