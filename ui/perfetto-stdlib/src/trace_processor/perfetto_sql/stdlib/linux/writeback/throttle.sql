-- SPDX-License-Identifier: Apache-2.0

-- @module linux.writeback.throttle
-- Which threads the kernel made wait because too much data was dirty, for how
-- long, and on what grounds.
--
-- Needs the ftrace event `writeback/balance_dirty_pages`, with raw ftrace
-- events imported. The kernel fires it each time that a thread which dirties
-- pages is above free run; most such events order no sleep.

INCLUDE PERFETTO MODULE linux.writeback.units;

-- The events of `linux_writeback_throttle_event`, in the kernel's units.
CREATE PERFETTO TABLE _linux_balance_dirty_pages
AS
SELECT
  id,
  ts,
  utid,
  extract_arg(arg_set_id, 'bdi') AS bdi,
  extract_arg(arg_set_id, 'cgroup_ino') AS cgroup_ino,
  extract_arg(arg_set_id, 'limit') AS limit_pages,
  extract_arg(arg_set_id, 'setpoint') AS setpoint,
  extract_arg(arg_set_id, 'dirty') AS dirty,
  -- wb_... from 6.15 on.
  coalesce(
    extract_arg(arg_set_id, 'wb_setpoint'),
    extract_arg(arg_set_id, 'bdi_setpoint')
  ) AS wb_setpoint,
  coalesce(
    extract_arg(arg_set_id, 'wb_dirty'),
    extract_arg(arg_set_id, 'bdi_dirty')
  ) AS wb_dirty,
  extract_arg(arg_set_id, 'dirty_ratelimit') AS dirty_ratelimit,
  extract_arg(arg_set_id, 'task_ratelimit') AS task_ratelimit,
  extract_arg(arg_set_id, 'dirtied') AS dirtied,
  extract_arg(arg_set_id, 'dirtied_pause') AS dirtied_pause,
  extract_arg(arg_set_id, 'paused') AS paused,
  extract_arg(arg_set_id, 'pause') AS pause,
  -- From 3.3 on.
  extract_arg(arg_set_id, 'period') AS period,
  extract_arg(arg_set_id, 'think') AS think
FROM ftrace_event
WHERE name = 'balance_dirty_pages';

-- The same with what the events of a thread before and behind tell of each.
CREATE PERFETTO TABLE _linux_throttle_step
AS
WITH
  with_previous AS (
    SELECT
      *,
      -- A call of balance_dirty_pages() goes round its loop, and fires again,
      -- only when the rate was 0; what it counts stays the same, and its sleep
      -- is part of paused.
      coalesce(
        lag(pause) OVER thread > 0
          AND lag(task_ratelimit) OVER thread = 0
          AND lag(bdi) OVER thread = bdi
          AND lag(dirtied) OVER thread = dirtied
          AND paused >= lag(paused) OVER thread + lag(pause) OVER thread,
        FALSE
      ) AS is_again
    FROM _linux_balance_dirty_pages
    WINDOW
      thread AS (PARTITION BY utid ORDER BY id)
  ),
  with_next AS (
    SELECT
      *,
      lead(ts) OVER thread AS next_ts,
      coalesce(lead(is_again) OVER thread, FALSE) AS goes_on
    FROM with_previous
    WINDOW
      thread AS (PARTITION BY utid ORDER BY id)
  )
SELECT
  *,
  -- Back within 2 ms, and more than 16 ms before the pause was over, which no
  -- clock is off by: a write with IOCB_NOWAIT, which fails with EAGAIN instead
  -- of a sleep, and which a worker does again.
  pause > 0
  AND NOT goes_on
  AND coalesce(next_ts - ts <= 2000000, FALSE)
  AND _linux_writeback_ns_of_ms!(pause) - (next_ts - ts) > 16000000
    AS is_nowait
FROM with_next;

-- Each `writeback/balance_dirty_pages` event: what the kernel asked of a
-- thread that dirties pages, and the state that it decided on. Times are
-- multiples of a jiffy: 1 to 10 ms.
CREATE PERFETTO TABLE linux_writeback_throttle_event(
  -- Id of the event.
  id JOINID(ftrace_event.id),
  -- When the kernel decided, which is before the sleep.
  ts TIMESTAMP,
  -- Thread that dirties pages.
  utid JOINID(thread.id),
  -- Backing device of the pages, such as `8:0` or `btrfs-2`.
  bdi STRING,
  -- Inode of the cgroup whose pages they are; 1 is the root. NULL up to 4.5.
  cgroup_ino LONG,
  -- First event of a call of balance_dirty_pages(). The others of a call went
  -- round its loop.
  is_call_start BOOL,
  -- The sleep that the kernel ordered; 0 or less is none.
  pause_dur DURATION,
  -- How long the thread slept, as far as the events tell: `pause_dur`, at most
  -- until the next event of the thread; 0 where it was told not to wait
  -- (IOCB_NOWAIT).
  sleep_dur DURATION,
  -- Time since the call began.
  paused_dur DURATION,
  -- Time that the dirtied pages are worth at the thread's rate.
  period_dur DURATION,
  -- Time since the scheduled end of the last pause.
  think_dur DURATION,
  -- Bytes that the thread dirtied since its count was last reset. Do not add
  -- them up: many events have the same ones again.
  dirtied_bytes LONG,
  -- The part of `dirtied_bytes` that this event adds. The sum is a lower bound
  -- of what was dirtied, since nothing tells of pages dirtied in free run.
  charged_bytes LONG,
  -- Bytes after which the thread is looked at.
  dirtied_pause_bytes LONG,
  -- The hard limit; up to 6.14.1 the machine's, also where a memory cgroup's
  -- limit throttles.
  limit_bytes LONG,
  -- Where throttling steers the dirty pages.
  setpoint_bytes LONG,
  -- Pages that are dirty or under writeback, of the machine or, where its
  -- limit throttles, of the memory cgroup.
  dirty_bytes LONG,
  -- The share of this device in `setpoint_bytes`. Wrong on 32-bit kernels with
  -- limits above some 256 MB, whose product of two numbers of pages wraps.
  wb_setpoint_bytes LONG,
  -- Its share of the pages that are dirty or under writeback.
  wb_dirty_bytes LONG,
  -- Base rate of a task on this device.
  dirty_ratelimit_bytes_per_s LONG,
  -- Rate that this thread may dirty at; 0 stops it.
  task_ratelimit_bytes_per_s LONG
)
AS
SELECT
  id,
  ts,
  utid,
  bdi,
  cgroup_ino,
  NOT is_again AS is_call_start,
  _linux_writeback_ns_of_ms!(pause) AS pause_dur,
  CASE
    WHEN pause <= 0 OR is_nowait THEN 0
    ELSE min(
      _linux_writeback_ns_of_ms!(pause),
      coalesce(next_ts - ts, _linux_writeback_ns_of_ms!(pause))
    )
  END AS sleep_dur,
  _linux_writeback_ns_of_ms!(paused) AS paused_dur,
  _linux_writeback_ns_of_ms!(period) AS period_dur,
  _linux_writeback_ns_of_ms!(think) AS think_dur,
  _linux_writeback_bytes_of_pages!(dirtied) AS dirtied_bytes,
  CASE
    WHEN is_again OR is_nowait THEN 0
    -- No sleep and no cost: the count is not reset, unless the thread was
    -- away for a second (pause < -HZ).
    WHEN pause BETWEEN -1000 AND 0 AND period = 0 THEN 0
    ELSE _linux_writeback_bytes_of_pages!(dirtied)
  END AS charged_bytes,
  _linux_writeback_bytes_of_pages!(dirtied_pause) AS dirtied_pause_bytes,
  _linux_writeback_bytes_of_pages!(limit_pages) AS limit_bytes,
  _linux_writeback_bytes_of_pages!(setpoint) AS setpoint_bytes,
  _linux_writeback_bytes_of_pages!(dirty) AS dirty_bytes,
  _linux_writeback_bytes_of_pages!(wb_setpoint) AS wb_setpoint_bytes,
  _linux_writeback_bytes_of_pages!(wb_dirty) AS wb_dirty_bytes,
  _linux_writeback_bytes_of_kib!(dirty_ratelimit)
    AS dirty_ratelimit_bytes_per_s,
  _linux_writeback_bytes_of_kib!(task_ratelimit) AS task_ratelimit_bytes_per_s
FROM _linux_throttle_step
ORDER BY id;

-- Calls of balance_dirty_pages(): how long each kept its thread. A call sleeps
-- again and again while the limit is exceeded, so it can take many times the
-- longest pause, which is 200 ms. The calls of a thread do not overlap.
CREATE PERFETTO TABLE linux_writeback_throttle_call(
  -- Id of its first event.
  id JOINID(ftrace_event.id),
  -- Its first event.
  ts TIMESTAMP,
  -- From its first event to the end of its last sleep; 0 for most calls.
  dur DURATION,
  -- Thread that was kept.
  utid JOINID(thread.id),
  -- Backing device.
  bdi STRING,
  -- Inode of the cgroup whose pages they are; 1 is the root. NULL up to 4.5.
  cgroup_ino LONG,
  -- Events of the call.
  event_count LONG,
  -- Those that ordered a sleep.
  pause_count LONG,
  -- Sleep that was ordered, of all of them.
  pause_dur DURATION,
  -- Longest of these sleeps.
  pause_max_dur DURATION,
  -- Bytes that the call charged to the thread; a lower bound when added up.
  charged_bytes LONG
)
AS
WITH
  numbered AS (
    SELECT
      *,
      sum(is_call_start) OVER (PARTITION BY utid ORDER BY id) AS call_number
    FROM linux_writeback_throttle_event
  )
SELECT
  min(id) AS id,
  min(ts) AS ts,
  max(ts + sleep_dur) - min(ts) AS dur,
  utid,
  min(bdi) AS bdi,
  min(cgroup_ino) AS cgroup_ino,
  count() AS event_count,
  sum(sleep_dur > 0) AS pause_count,
  sum(iif(sleep_dur > 0, pause_dur, 0)) AS pause_dur,
  max(iif(sleep_dur > 0, pause_dur, 0)) AS pause_max_dur,
  sum(charged_bytes) AS charged_bytes
FROM numbered
GROUP BY
  utid,
  call_number
ORDER BY
  min(id);

-- How much each thread was throttled, by device and cgroup.
CREATE PERFETTO TABLE linux_writeback_throttle_by_thread(
  -- Thread that dirties pages.
  utid JOINID(thread.id),
  -- Backing device.
  bdi STRING,
  -- Inode of the cgroup whose pages they are; 1 is the root. NULL up to 4.5.
  cgroup_ino LONG,
  -- Its first call.
  ts TIMESTAMP,
  -- From its first call to the end of its last one.
  dur DURATION,
  -- Calls of balance_dirty_pages() above free run.
  call_count LONG,
  -- Sleeps that were ordered in them.
  pause_count LONG,
  -- All these sleeps together.
  pause_dur DURATION,
  -- Longest of these sleeps.
  pause_max_dur DURATION,
  -- Longest call.
  call_max_dur DURATION,
  -- Bytes charged to the thread: a lower bound of what it dirtied.
  charged_bytes LONG,
  -- Share of `dur` that it was kept in calls, 0 to 1; NULL where `dur` is 0.
  throttled_ratio DOUBLE
)
AS
SELECT
  utid,
  bdi,
  cgroup_ino,
  min(ts) AS ts,
  max(ts + dur) - min(ts) AS dur,
  count() AS call_count,
  sum(pause_count) AS pause_count,
  sum(pause_dur) AS pause_dur,
  max(pause_max_dur) AS pause_max_dur,
  max(dur) AS call_max_dur,
  sum(charged_bytes) AS charged_bytes,
  1.0 * sum(dur) / nullif(max(ts + dur) - min(ts), 0) AS throttled_ratio
FROM linux_writeback_throttle_call
GROUP BY
  utid,
  bdi,
  cgroup_ino;
