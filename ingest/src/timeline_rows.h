// SPDX-License-Identifier: Apache-2.0
// ViewRows: the rows of a timeline view; RowBatch: rows that wait to be drawn.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sink/database.h"
#include "sink/track_tree.h"

namespace wbscope {

// One row as it is drawn: a point of a counter when it has a value, else a slice
// or, without dur, an instant.
struct DrawnRow {
  TrackRow row;
  std::optional<TrackTree::Value> value;
};

void draw(TrackTree& tree, const TrackPlan& plan, const DrawnRow& drawn);

class ViewRows {
 public:
  // Raises: Error (exit 2) when the view lacks a column that each timeline has.
  ViewRows(Database& db, const std::string& view, bool is_sorted);

  // The next row that is drawn; its texts, arguments and arrows live until the
  // next call. False at the end. Raises: Error.
  [[nodiscard]] bool next(DrawnRow& out);

 private:
  // The columns of every timeline view; those from kRank on may be left out.
  enum Column : std::size_t {
    kTs, kDur, kTrack, kName, kValue, kUnit, kRank, kTid, kFlows, kColumns
  };
  static constexpr std::array<std::string_view, kColumns> kNames{
      "ts", "dur", "track", "name", "value", "unit", "rank", "tid", "flows"};

  void find_columns(const std::string& view);
  [[nodiscard]] bool is_null(Column c) const { return at_[c] < 0 || rows_.is_null(at_[c]); }
  [[nodiscard]] std::string_view text(Column c) const;
  [[nodiscard]] std::optional<std::int64_t> integer(Column c) const;
  void read_arguments();

  Statement rows_;
  std::array<int, kColumns> at_{};
  std::vector<std::pair<std::string, int>> argument_at_;
  int more_at_ = -1;
  std::vector<TrackArgument> args_;
  std::vector<std::uint64_t> flows_;
};

// Copies of rows, in their order.
class RowBatch {
 public:
  void add(const DrawnRow& drawn);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }

  // Gives the rows, once; what a row has lives until the next one is read.
  [[nodiscard]] bool next(DrawnRow& out);

 private:
  template <typename T>
  void put(const T& value);
  void put_text(std::string_view text);
  template <typename T>
  [[nodiscard]] T get();
  [[nodiscard]] std::string_view get_text();

  std::string bytes_;
  std::size_t at_ = 0;  // of what is read next
  std::vector<TrackArgument> args_;
  std::vector<std::uint64_t> flows_;
};

}  // namespace wbscope
