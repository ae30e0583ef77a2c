// SPDX-License-Identifier: Apache-2.0
// Rows of timeline views ahead of their turn.
#include "timeline_lanes.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/input_file.h"
#include "base/interrupt.h"
#include "timeline_plan.h"

namespace wbscope {
namespace {

constexpr std::size_t kBatchBytes = 256u << 10;
// Of rows that nobody has asked for yet; then the lanes wait.
constexpr std::size_t kMostWaitingBytes = 64u << 20;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

}  // namespace

TimelineLanes::TimelineLanes(std::string database, const SqlLimits& limits,
                             std::vector<LaneOptions> lanes, unsigned threads)
    : database_(std::move(database)), limits_(limits), lanes_(std::move(lanes)) {
  for (const LaneOptions& lane : lanes_) {
    for (const std::string& view : lane.views) views_[view];
  }
  if (lanes_.empty() || threads < 2) return;
  try {
    thread_ = std::thread([this] { work(); });
    has_begun_ = true;
  } catch (const std::system_error&) {
    // No more threads: next() does the work.
  }
}

TimelineLanes::~TimelineLanes() { end(); }

void TimelineLanes::end() {
  {
    const std::scoped_lock hold(lock_);
    is_stopped_ = true;
    for (Database* db : running_) db->stop();
  }
  changed_.notify_all();
  for (std::thread* thread : {&thread_, &second_thread_}) {
    if (thread->joinable()) thread->join();
  }
}

void TimelineLanes::take(std::unique_ptr<Database>& db, std::vector<std::string> views) {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock hold(lock_);
    for (const std::string& view : views) views_[view];
  }
  const std::vector<std::string> added = views;
  taken_ = std::move(db);
  try {
    second_thread_ = std::thread([this, names = std::move(views)] {
      guarded([this, &names] { draw_views(*taken_, names); });
    });
  } catch (const std::system_error&) {
    const std::scoped_lock hold(lock_);
    for (const std::string& view : added) views_.erase(view);
    db = std::move(taken_);
  }
}

void TimelineLanes::give(std::deque<std::string> scripts) {
  {
    const std::scoped_lock hold(lock_);
    scripts_ = std::move(scripts);
  }
  changed_.notify_all();
}

void TimelineLanes::check() {
  const std::scoped_lock hold(lock_);
  if (problem_) std::rethrow_exception(problem_);
}

std::optional<RowBatch> TimelineLanes::next(const std::string& view) {
  std::unique_lock hold(lock_);
  if (!has_begun_) {
    has_begun_ = is_wanted_ = true;  // wanted: it does not wait for itself
    hold.unlock();
    work();
    hold.lock();
  }
  Ready& ready = views_.find(view)->second;
  while (!problem_ && ready.batches.empty() && !ready.is_whole) {
    is_wanted_ = true;
    changed_.notify_all();
    // Looks up now and then: a signal may have come to the other thread.
    changed_.wait_for(hold, kBetweenLooks);
    throw_if_interrupted();
  }
  is_wanted_ = false;
  if (problem_) std::rethrow_exception(problem_);
  if (ready.batches.empty()) return std::nullopt;
  RowBatch batch = std::move(ready.batches.front());
  ready.batches.pop_front();
  waiting_bytes_ -= batch.bytes();
  changed_.notify_all();
  return batch;
}

// Whatever ends a lane: nobody stops a database that is gone.
class TimelineLanes::Running {
 public:
  Running(TimelineLanes& lanes, Database& db) : lanes_(lanes), db_(db) {
    const std::scoped_lock hold(lanes_.lock_);
    is_first_ = lanes_.running_.insert(&db_).second;
    if (lanes_.is_stopped_) db_.stop();
  }
  ~Running() {
    const std::scoped_lock hold(lanes_.lock_);
    if (is_first_) lanes_.running_.erase(&db_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  TimelineLanes& lanes_;
  Database& db_;
  bool is_first_ = false;
};

void TimelineLanes::work() noexcept {
  guarded([this] { draw_lanes(); });
}

void TimelineLanes::guarded(const std::function<void()>& job) noexcept {
  try {
    job();
  } catch (...) {
    const std::scoped_lock hold(lock_);
    if (!problem_) problem_ = std::current_exception();
  }
  changed_.notify_all();
}

void TimelineLanes::draw_lanes() {
  Database db(database_, database_, Database::Mode::kReadOnly);
  db.limit(limits_);
  const Running running(*this, db);
  for (const LaneOptions& lane : lanes_) {
    db.exec(script_of(lane));
    draw_views(db, lane.views);
  }
}

void TimelineLanes::draw_views(Database& db, const std::vector<std::string>& views) {
  const Running running(*this, db);
  for (const std::string& view : views) {
    ViewRows rows(db, view, read_view_plan(db, view).is_sorted);
    RowBatch batch;
    for (DrawnRow row; rows.next(row);) {
      batch.add(row);
      if (batch.bytes() >= kBatchBytes) put(view, batch);
    }
    put(view, batch);
    const std::scoped_lock hold(lock_);
    views_.find(view)->second.is_whole = true;
    changed_.notify_all();
  }
}

void TimelineLanes::put(const std::string& view, RowBatch& batch) {
  std::unique_lock hold(lock_);
  changed_.wait(hold, [this] {
    return is_stopped_ || is_wanted_ || waiting_bytes_ < kMostWaitingBytes;
  });
  if (batch.bytes() > 0) {
    waiting_bytes_ += batch.bytes();
    views_.find(view)->second.batches.push_back(std::exchange(batch, {}));
  }
  changed_.notify_all();
}

std::string TimelineLanes::script_of(const LaneOptions& lane) {
  if (lane.setup_path != "-") return read_text_file(lane.setup_path, kMaxSetupBytes);
  std::unique_lock hold(lock_);
  changed_.wait(hold, [this] { return is_stopped_ || scripts_; });
  if (is_stopped_ || scripts_->empty()) return {};
  std::string script = std::move(scripts_->front());
  scripts_->pop_front();
  return script;
}

}  // namespace wbscope
