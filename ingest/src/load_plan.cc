// SPDX-License-Identifier: Apache-2.0
// The plan of a load, read by SQLite's JSON.
#include "load_plan.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sink/database.h"

namespace wbscope {
namespace {

[[noreturn]] void wrong(const std::string& name, const std::string& found,
                        const std::string& wanted) {
  throw Error(Exit::kUsage, {.slug = "bad-plan",
                             .object = name,
                             .text = "found " + found + ", wanted " + wanted,
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = "wbscope ingest RUN    # which makes the plan"});
}

class Plan {
 public:
  Plan(const std::string& json, std::string name)
      : db_(":memory:", name, Database::Mode::kReadOnly), json_(json), name_(std::move(name)) {
    Statement type(db_, "SELECT CASE WHEN json_valid(?1) THEN json_type(?1) END");
    type.bind_text(1, json_);
    if (!type.step() || type.text(0) != "object") wrong(name_, "no JSON object", "one of events");
  }

  void read(LoadPlan& out) {
    for (const Member& event : members("$", "object")) {
      check_event(event.key);
      read_event(event.key, path_of("$", event.key), out);
    }
  }

 private:
  // The members of the object or array at a path.
  struct Member {
    std::string key, type, value;
  };
  std::vector<Member> members(const std::string& path, std::string_view wanted) {
    Statement rows(db_, "SELECT key, type, atom FROM json_each(?1, ?2)");
    rows.bind_text(1, json_);
    rows.bind_text(2, path);
    std::vector<Member> out;
    while (rows.step()) {
      out.push_back({.key = std::string(rows.text(0)),
                     .type = std::string(rows.text(1)),
                     .value = std::string(rows.text(2))});
      if (!wanted.empty() && out.back().type != wanted) {
        wrong(name_, out.back().type + " in " + path, std::string(wanted));
      }
    }
    return out;
  }

  std::vector<std::string> names(const std::string& path) {
    std::vector<std::string> out;
    for (Member& one : members(path, "text")) {
      if (one.value.empty()) wrong(name_, "an empty name in " + path, "names");
      out.push_back(std::move(one.value));
    }
    return out;
  }

  void check_event(const std::string& event) const {
    if (event.find(':') == std::string::npos || event.find('"') != std::string::npos) {
      wrong(name_, "the event '" + event + "'", "system:name");
    }
  }

  static std::string path_of(const std::string& path, const std::string& key) {
    return path + ".\"" + key + '"';
  }

  void read_event(const std::string& event, const std::string& path, LoadPlan& out) {
    std::string previous, group;
    for (const Member& one : members(path, {})) {
      const std::string inner = path_of(path, one.key);
      if (one.key == "previous" && (one.value == "tid" || one.value == "any")) {
        previous = one.value;
      } else if (one.key == "group" && one.type == "text") {
        group = one.value;
      } else if (one.key == "repeats" && one.type == "array") {
        out.previous.add_repeats(event, names(inner));
      } else if (one.key == "flags" && one.type == "true") {
        out.flags.insert(event);
      } else if (one.key == "context" && one.type == "object") {
        for (const Member& other : members(inner, "array")) {
          check_event(other.key);
          out.previous.add_context(event, other.key, names(path_of(inner, other.key)));
        }
      } else if (one.key == "indexes" && one.type == "array") {
        for (const Member& index : members(inner, "object")) {
          read_index(event, inner + '[' + index.key + ']', out);
        }
      } else {
        wrong(name_, one.key + " (" + one.type + " '" + one.value + "') of " + event,
              "previous: tid or any, group, repeats, flags, context, indexes");
      }
    }
    if (!previous.empty()) {
      out.previous.add(event, previous == "tid" ? PreviousOf::kTask : PreviousOf::kAny, group);
    }
  }

  void read_index(const std::string& event, const std::string& path, LoadPlan& out) {
    std::vector<std::string> columns;
    std::string where;
    for (const Member& one : members(path, {})) {
      if (one.key == "columns" && one.type == "array") {
        columns = names(path_of(path, one.key));
      } else if (one.key == "where" && one.type == "text") {
        where = one.value;
      } else {
        wrong(name_, one.key + " of an index of " + event, "columns and where");
      }
    }
    if (columns.empty()) wrong(name_, "an index of " + event + " without columns", "some");
    out.indexes.add(event, std::move(columns), where);
  }

  Database db_;
  const std::string& json_;
  std::string name_;
};

}  // namespace

LoadPlan parse_load_plan(const std::string& json, const std::string& name) {
  LoadPlan out;
  Plan(json, name).read(out);
  return out;
}

}  // namespace wbscope
