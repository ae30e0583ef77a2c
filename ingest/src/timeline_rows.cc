// SPDX-License-Identifier: Apache-2.0
// Rows of timeline views, read and kept.
#include "timeline_rows.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "base/error.h"

namespace wbscope {
namespace {

// Columns that are named so are the arguments of a slice, without this word.
constexpr std::string_view kArgument = "arg_";
// And of this one each line is: NAME=VALUE.
constexpr std::string_view kMoreArguments = "arg_more";

// The numbers in text, divided by commas or blanks; what is none is left out.
void read_flows(std::string_view text, std::vector<std::uint64_t>& flows) {
  flows.clear();
  const char* at = text.data();
  const char* last = at + text.size();
  while (at != last) {
    std::uint64_t flow = 0;
    const auto found = std::from_chars(at, last, flow);
    if (found.ec == std::errc()) flows.push_back(flow);
    at = found.ptr == at ? at + 1 : found.ptr;
  }
}

}  // namespace

void draw(TrackTree& tree, const TrackPlan& plan, const DrawnRow& drawn) {
  if (drawn.value) {
    tree.counter(plan, drawn.row, *drawn.value);
  } else if (drawn.row.dur) {
    tree.slice(plan, drawn.row);
  } else {
    tree.instant(plan, drawn.row);
  }
}

ViewRows::ViewRows(Database& db, const std::string& view, bool is_sorted)
    : rows_(db, "SELECT * FROM " + quoted(view) + (is_sorted ? "" : " ORDER BY ts, dur DESC")) {
  find_columns(view);
  for (int i = 0; i < rows_.columns(); ++i) {
    const auto name = rows_.column_name(i);
    if (name == kMoreArguments) {
      more_at_ = i;
    } else if (name.starts_with(kArgument)) {
      argument_at_.emplace_back(name.substr(kArgument.size()), i);
    }
  }
}

void ViewRows::find_columns(const std::string& view) {
  at_.fill(-1);
  for (int i = 0; i < rows_.columns(); ++i) {
    const auto* found = std::find(kNames.begin(), kNames.end(), rows_.column_name(i));
    if (found != kNames.end()) at_[static_cast<std::size_t>(found - kNames.begin())] = i;
  }
  for (std::size_t c = 0; c < kRank; ++c) {
    if (at_[c] >= 0) continue;
    throw Error(Exit::kUsage, {.slug = "not-a-timeline",
                               .object = view,
                               .text = "view has no column " + std::string(kNames[c]) +
                                       ", wanted ts, dur, track, name, value, unit",
                               .at = {},
                               .have = {},
                               .effect = "nothing was written",
                               .fix = "see sql/timelines/ for examples"});
  }
}

std::string_view ViewRows::text(Column c) const {
  return is_null(c) ? std::string_view{} : rows_.text(at_[c]);
}

std::optional<std::int64_t> ViewRows::integer(Column c) const {
  return is_null(c) ? std::nullopt : std::optional(rows_.integer(at_[c]));
}

bool ViewRows::next(DrawnRow& out) {
  do {
    if (!rows_.step()) return false;
    // Of a counter, and not recorded: no point.
  } while (is_null(kTs) || is_null(kTrack) || (is_null(kValue) && !is_null(kUnit)));
  out.row = {.ts = rows_.integer(at_[kTs]),
             .dur = integer(kDur),
             .tid = integer(kTid),
             .rank = integer(kRank),
             .track = text(kTrack),
             .name = text(kName),
             .unit = text(kUnit),
             .args = {},
             .flows = {}};
  out.value.reset();
  if (!is_null(kValue)) {
    if (rows_.is_integer(at_[kValue])) {
      out.value = rows_.integer(at_[kValue]);
    } else {
      out.value = rows_.real(at_[kValue]);
    }
    return true;
  }
  read_arguments();
  out.row.args = args_;
  if (out.row.dur) {
    read_flows(text(kFlows), flows_);
    out.row.flows = flows_;
  }
  return true;
}

// Those that are known in this row; their texts live until the next step.
void ViewRows::read_arguments() {
  args_.clear();
  for (const auto& [key, at] : argument_at_) {
    if (rows_.is_null(at)) continue;
    if (rows_.is_integer(at)) {
      args_.push_back({key, rows_.integer(at)});
    } else if (rows_.is_real(at)) {
      args_.push_back({key, rows_.real(at)});
    } else {
      args_.push_back({key, rows_.text(at)});
    }
  }
  if (more_at_ < 0 || rows_.is_null(more_at_)) return;
  for (std::string_view left = rows_.text(more_at_); !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    const std::size_t middle = line.find('=');
    if (middle == std::string_view::npos || middle == 0) continue;
    args_.push_back({line.substr(0, middle), line.substr(middle + 1)});
  }
}

template <typename T>
void RowBatch::put(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof(value));
  std::memcpy(bytes_.data() + at, &value, sizeof(value));
}

template <typename T>
T RowBatch::get() {
  T value;
  std::memcpy(&value, bytes_.data() + at_, sizeof(value));
  at_ += sizeof(value);
  return value;
}

void RowBatch::put_text(std::string_view text) {
  put(text.size());
  bytes_ += text;
}

std::string_view RowBatch::get_text() {
  const auto size = get<std::size_t>();
  const std::string_view text = std::string_view(bytes_).substr(at_, size);
  at_ += size;
  return text;
}

void RowBatch::add(const DrawnRow& drawn) {
  const TrackRow& row = drawn.row;
  put(row.ts);
  put(row.dur);
  put(row.tid);
  put(row.rank);
  for (const std::string_view text : {row.track, row.name, row.unit}) put_text(text);
  put(drawn.value);
  put(row.args.size());
  for (const TrackArgument& argument : row.args) {
    put_text(argument.key);
    put(argument.value.index());
    std::visit(
        [this](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string_view>) {
            put_text(value);
          } else {
            put(value);
          }
        },
        argument.value);
  }
  put(row.flows.size());
  for (const std::uint64_t flow : row.flows) put(flow);
}

bool RowBatch::next(DrawnRow& out) {
  if (at_ == bytes_.size()) return false;
  TrackRow& row = out.row;
  row.ts = get<std::int64_t>();
  row.dur = get<std::optional<std::int64_t>>();
  row.tid = get<std::optional<std::int64_t>>();
  row.rank = get<std::optional<std::int64_t>>();
  row.track = get_text();
  row.name = get_text();
  row.unit = get_text();
  out.value = get<std::optional<TrackTree::Value>>();
  args_.clear();
  for (auto left = get<std::size_t>(); left > 0; --left) {
    const std::string_view key = get_text();
    const auto kind = get<std::size_t>();
    if (kind == 0) {
      args_.push_back({key, get<std::int64_t>()});
    } else if (kind == 1) {
      args_.push_back({key, get<double>()});
    } else {
      args_.push_back({key, get_text()});
    }
  }
  flows_.clear();
  for (auto left = get<std::size_t>(); left > 0; --left) flows_.push_back(get<std::uint64_t>());
  row.args = args_;
  row.flows = flows_;
  return true;
}

}  // namespace wbscope
