// SPDX-License-Identifier: Apache-2.0
// Lines of the file task_io.
#include "sidecar/task_io.h"

#include <algorithm>
#include <charconv>

namespace wbscope {
namespace {

constexpr std::string_view kName = "comm=";
constexpr std::size_t kTid = 1;
static_assert(kTaskIoKeys[kTid] == "tid");

// Up to the next space, which goes too.
std::string_view take_word(std::string_view& line) {
  const auto end = line.find(' ');
  const auto word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

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
  const auto number = word.substr(equals + 1);
  std::int64_t value = 0;
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), value);
  if (problem != std::errc() || end != number.data() + number.size()) return false;
  thread.values[static_cast<std::size_t>(key - kTaskIoKeys.begin())] = value;
  return true;
}

// Whether the line is whole.
bool read_line(std::string_view line, TaskIo& thread) {
  thread.sample = take_word(line);
  if (thread.sample != "start" && thread.sample != "end" && thread.sample != "exit") return false;
  while (!line.empty() && !line.starts_with(kName)) {
    if (!read_value(take_word(line), thread)) return false;
  }
  if (line.empty() || !thread.values[kTid]) return false;
  thread.comm = unescaped(line.substr(kName.size()));
  return true;
}

}  // namespace

TextProblems parse_task_io(std::string_view text,
                           const std::function<void(const TaskIo&)>& on_thread) {
  TextProblems problems;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    TaskIo thread;
    if (read_line(line, thread)) {
      on_thread(thread);
    } else {
      problems.add(number);
    }
  }
  return problems;
}

}  // namespace wbscope
