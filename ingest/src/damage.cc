// SPDX-License-Identifier: Apache-2.0
// What is said of a damaged trace.
#include "damage.h"

#include <map>
#include <optional>
#include <string>

#include "bad_stamps.h"

namespace wbscope {

void add_change(std::vector<Message>& damage, const InputFile& file) {
  const std::string change = file.change();
  if (change.empty()) return;
  damage.push_back({.slug = "source-changed",
                    .object = {},
                    .text = "the file changed while it was read: " + change,
                    .at = ParseError::place("whole file", 0, std::nullopt),
                    .have = {},
                    .effect = {},
                    .fix = {}});
}

namespace {

constexpr std::size_t kFewAlike = 8;  // are told one by one when they differ in numbers

std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) out += c;
    if (is_digit && (out.empty() || out.back() != '#')) out += '#';
  }
  return out;
}

// One message for the same damage at many places: the first, and how many
// there are.
std::vector<Message> merged(const std::vector<Message>& damage) {
  std::map<std::string, std::size_t> alike;
  for (const Message& each : damage) ++alike[each.slug + without_numbers(each.text)];
  struct Kind {
    std::size_t place, count;
  };
  std::map<std::string, Kind> kinds;
  std::vector<Message> out;
  for (const Message& each : damage) {
    const std::string form = each.slug + without_numbers(each.text);
    const std::string key = alike[form] > kFewAlike ? form : each.slug + each.text;
    const auto [kind, is_new] = kinds.try_emplace(key, Kind{out.size(), 0});
    ++kind->second.count;
    if (is_new) out.push_back(each);
  }
  for (const auto& [key, kind] : kinds) {
    if (kind.count > 1) {
      out[kind.place].text += " (the first of " + std::to_string(kind.count) + " such)";
    }
  }
  return out;
}

}  // namespace

void write_damage(RunWriter& run, const std::vector<Message>& damage) {
  run.meta("damaged", std::int64_t{damage.empty() ? 0 : 1});
  std::string all;
  for (const auto& item : merged(damage)) {
    all += (all.empty() ? "" : "; ") + item.text + " (" + item.at + ")";
  }
  run.meta("damage", all);
}

void warn_of_damage(const Reporter& reporter, const InputFile& file,
                    const std::vector<Message>& damage, std::uint64_t events,
                    const std::string& where) {
  for (Message message : merged(damage)) {
    message.object = file.path();
    if (message.slug == kBadStampsSlug) {  // nothing is missing
      message.effect += where;
      reporter.warning(message);
      continue;
    }
    message.slug = "damaged-trace";
    message.effect = std::to_string(events) +
                     " events before or beside the damage were read" + where;
    message.fix = "record or copy the trace again; trace-cmd report shows what it can read";
    reporter.warning(message);
  }
}

}  // namespace wbscope
