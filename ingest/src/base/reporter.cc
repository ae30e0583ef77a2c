// SPDX-License-Identifier: Apache-2.0
// What the program tells on stderr.
#include "base/reporter.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/interrupt.h"
#include "base/utf8.h"

namespace wbscope {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : replace_invalid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// False when nobody is there to read. Once a signal has come, a reader that
// does not read is not waited for: no other signal may come to end the wait.
bool put(const std::string& line) {
  if (is_interrupted()) {
    pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&out, 1, 0) == 0) return true;
  }
  const bool written = std::fwrite(line.data(), 1, line.size(), stderr) == line.size();
  return (std::fflush(stderr) == 0 && written) || errno != EPIPE;
}

}  // namespace

void Reporter::progress(std::uint64_t done_bytes, std::uint64_t total_bytes) const {
  if (!json_lines_) return;
  if (put("{\"type\":\"progress\",\"done_bytes\":" + std::to_string(done_bytes) +
          ",\"total_bytes\":" + std::to_string(total_bytes) + "}\n")) {
    return;
  }
  throw Error(Exit::kInterrupted, {.slug = "interrupted",
                                   .object = "wbscope-ingest",
                                   .text = "the reader of --json-lines has gone",
                                   .at = {},
                                   .have = {},
                                   .effect = "nothing was written",
                                   .fix = {}});
}

void Reporter::done(const std::string& output, std::uint64_t events, std::uint64_t loaded,
                    bool damaged) const {
  if (!json_lines_) {
    put("wrote " + output + ": " + std::to_string(events) + " events counted, " +
        std::to_string(loaded) + " loaded\n");
    return;
  }
  put("{\"type\":\"done\",\"events_count\":" + std::to_string(events) +
      ",\"loaded_count\":" + std::to_string(loaded) +
      ",\"damaged\":" + (damaged ? "1" : "0") + ",\"output\":" + json_string(output) + "}\n");
}

void Reporter::say(std::string_view type, const Message& message) const {
  const std::pair<std::string_view, const std::string*> parts[] = {
      {"at", &message.at},
      {"have", &message.have},
      {"effect", &message.effect},
      {"fix", &message.fix}};
  std::string out;
  if (json_lines_) {
    out = "{\"type\":" + json_string(type) + ",\"slug\":" + json_string(message.slug) +
          ",\"object\":" + json_string(message.object) +
          ",\"message\":" + json_string(message.text);
    for (const auto& [key, value] : parts) {
      if (!value->empty()) out += ",\"" + std::string(key) + "\":" + json_string(*value);
    }
    out += "}\n";
  } else {
    out = std::string(type) + "[" + message.slug + "]: " + message.object + ": " + message.text +
          "\n";
    for (const auto& [key, value] : parts) {
      if (!value->empty()) out += "  " + std::string(key) + ": " + *value + "\n";
    }
  }
  put(out);
}

}  // namespace wbscope
