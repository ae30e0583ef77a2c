// SPDX-License-Identifier: Apache-2.0
// What is said of a damaged trace.
#include "damage.h"

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

void write_damage(RunWriter& run, const std::vector<Message>& damage) {
  run.meta("damaged", std::int64_t{damage.empty() ? 0 : 1});
  std::string all;
  for (const auto& item : damage) {
    all += (all.empty() ? "" : "; ") + item.text + " (" + item.at + ")";
  }
  run.meta("damage", all);
}

void warn_of_damage(const Reporter& reporter, const InputFile& file,
                    const std::vector<Message>& damage, std::uint64_t events,
                    const std::string& where) {
  for (Message message : damage) {
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
