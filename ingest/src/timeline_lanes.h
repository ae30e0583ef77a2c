// SPDX-License-Identifier: Apache-2.0
// TimelineLanes: rows of timeline views that a second thread asks for ahead of their turn.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sink/database.h"
#include "timeline_rows.h"

namespace wbscope {

// Views that another connection than the main one gives, and the script that makes them.
struct LaneOptions {
  std::string setup_path;  // "-": the text comes later, by give()
  std::vector<std::string> views;
};

// The lanes are worked on one after the other, their views in their order, on one
// connection: a script may read what one before has made. Where
// there is no second thread, because threads is 1 or the machine has no more, all
// of it is done when the first row is asked for.
class TimelineLanes {
 public:
  TimelineLanes(std::string database, const SqlLimits& limits, std::vector<LaneOptions> lanes,
                unsigned threads);
  // Stops what goes on.
  ~TimelineLanes();
  TimelineLanes(const TimelineLanes&) = delete;
  TimelineLanes& operator=(const TimelineLanes&) = delete;

  [[nodiscard]] bool has(const std::string& view) const { return views_.contains(view); }

  // Lets a thread ask for the rows of these views, too, on a connection that has
  // them; it keeps the connection. Nothing is done where lanes have no thread: the
  // caller asks for what has() does not know.
  void take(std::unique_ptr<Database>& db, std::vector<std::string> views);

  // The scripts of the lanes that wait for one, in their order; one that is
  // missing is empty.
  void give(std::deque<std::string> scripts);

  // The next rows of the view; none at its end. Raises: Error, whatever stopped
  // the lanes.
  [[nodiscard]] std::optional<RowBatch> next(const std::string& view);

  // Raises what has stopped the lanes, if anything has.
  void check();

  // Stops what goes on, and waits until their threads have ended: who forks must be
  // alone, for what another thread has locked stays locked in the child.
  void end();

 private:
  struct Ready {
    std::deque<RowBatch> batches;
    bool is_whole = false;
  };

  class Running;

  void work() noexcept;
  void guarded(const std::function<void()>& job) noexcept;
  void draw_views(Database& db, const std::vector<std::string>& views);
  void draw_lanes();
  void put(const std::string& view, RowBatch& batch);
  [[nodiscard]] std::string script_of(const LaneOptions& lane);

  const std::string database_;
  const SqlLimits limits_;
  const std::vector<LaneOptions> lanes_;

  std::mutex lock_;  // of what follows
  std::condition_variable changed_;
  std::map<std::string, Ready, std::less<>> views_;  // only who asks for rows adds some
  std::optional<std::deque<std::string>> scripts_;
  std::size_t waiting_bytes_ = 0;
  bool is_wanted_ = false;  // next() waits
  bool is_stopped_ = false;
  std::set<Database*> running_;
  std::exception_ptr problem_;

  bool has_begun_ = false;
  std::unique_ptr<Database> taken_;
  std::thread thread_, second_thread_;
};

}  // namespace wbscope
