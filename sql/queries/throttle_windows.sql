-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    throttle_windows
-- @title    Share of each window that tasks were throttled
-- @summary  For each window, the share of it that each task was throttled.
-- @read     throttled_ratio is the share of the window that the task slept in
--   balance_dirty_pages(); a task has a row in every window of its life. In a
--   fair run those who dirtied the larger share (dirtied_share) waited longer,
--   and slept_max, the longest single wait, is small.
-- @filters  window, range, bdi, tid, task, cgroup
-- @grain    window, task under a name; order window_start_ns, tid
-- @keys     window_start_ns, tid, comm
-- @events   writeback:balance_dirty_pages|
--   writeback:writeback_balance_dirty_pages_waiting
-- @optional sched:sched_switch
-- @column   window_ns INTEGER part of the window that the trace, or the time
--   asked for, covers
-- @column   comm TEXT its name at that time; as in throttle_by_task
-- @column   throttled_ratio REAL time slept in the window over window_ns; of a
--   last window that is short, few events make it
-- @column   dirtied_bytes INTEGER lower bound; counted in the window in which
--   the kernel charged it; NULL with the events of February 2011
-- @column   slept_max_ns INTEGER longest wait of which a part is in the window,
--   in full length; 0 = none
-- @column   dirtied_share_ratio REAL its share of what all tasks dirtied in the
--   window; NULL when none did
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   throttled_ratio lower: share of the window in which the kernel made
--   the task wait; a smooth run has the same share in each window
-- @metric   slept_max_ns lower: longest throttled write of this task in the
--   window, which is what a user notices
-- @cost     170
WITH
  throttle AS (
    SELECT
      t.tid, t.task_id, t.bdi, t.cgroup_ino, t.first_ts,
      t.last_ts AS end_ts
    FROM wb_throttle_total AS t
    UNION ALL
    SELECT s.tid, s.task_id, s.bdi, s.cgroup_ino, s.from_ts, s.to_ts
    FROM _throttle_piece AS s
    UNION ALL
    SELECT w.tid, t.task_id, w.device, NULL, w.ts, w.end_ts
    FROM wb_call AS w
    LEFT JOIN wb_task AS t ON task_of!(t, w)
    WHERE w.call = 'balance_dirty_pages_waiting' AND w.end_ts IS NOT NULL
  ),
  throttled_task AS (
    SELECT
      t.tid, t.task_id,
      min(t.first_ts) AS first_ts,
      max(t.end_ts) AS end_ts
    FROM throttle AS t
    CROSS JOIN wb_params AS p
    WHERE of_wb!(t, p)
      AND (p.tid IS NULL OR t.tid = p.tid)
    GROUP BY t.tid, t.task_id
  ),
  life AS (
    SELECT
      t.tid, t.task_id,
      coalesce(k.comm, 'tid ' || t.tid) AS comm,
      CASE WHEN k.first_ts < t.first_ts THEN k.first_ts ELSE t.first_ts END
        AS first_ts,
      CASE WHEN k.last_ts > t.end_ts THEN k.last_ts ELSE t.end_ts END AS end_ts
    FROM throttled_task AS t
    CROSS JOIN wb_params AS p
    LEFT JOIN wb_task AS k ON k.task_id = t.task_id
    WHERE p.comm_glob IS NULL
      OR coalesce(k.comm, 'tid ' || t.tid) GLOB p.comm_glob
  ),
  -- What is known of a task in a window: that it lived, slept, dirtied.
  cell AS (
    SELECT
      w.window_index, l.task_id,
      1 AS lived,
      0 AS slept_ns,
      0 AS slept_max_ns,
      0 AS dirtied_bytes
    FROM life AS l
    JOIN wb_window AS w
      ON w.window_start_ns <= l.end_ts AND w.window_end_ns > l.first_ts
    UNION ALL
    SELECT s.window_index, s.task_id, 0, s.to_ts - s.from_ts, s.slept_ns, 0
    FROM _throttle_piece AS s
    CROSS JOIN wb_params AS p
    WHERE of_wb!(s, p)
    UNION ALL
    SELECT
      (t.ts - b.start_ts) / p.window_ns,
      t.task_id, 0, 0, 0, t.accounted_bytes
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE t.is_step = 1
      AND t.accounted_bytes > 0
      AND in_time!(t.ts, b)
      AND of_wb!(t, p)
  ),
  summed AS (
    SELECT
      c.window_index, c.task_id,
      max(c.lived) AS lived,
      sum(c.slept_ns) AS slept_ns,
      max(c.slept_max_ns) AS slept_max_ns,
      sum(c.dirtied_bytes) AS dirtied_bytes
    FROM cell AS c
    GROUP BY c.window_index, c.task_id
  ),
  shared AS (
    SELECT
      s.*,
      sum(s.dirtied_bytes) OVER (PARTITION BY s.window_index) AS all_bytes
    FROM summed AS s
  )
SELECT
  w.window_start_ns,
  min(w.window_end_ns, b.end_ts) - w.window_start_ns AS window_ns,
  l.tid, l.comm,
  1.0 * s.slept_ns / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    AS throttled_ratio,
  CASE WHEN EXISTS (SELECT 1 FROM wb_throttle_total) THEN s.dirtied_bytes END
    AS dirtied_bytes,
  s.slept_max_ns,
  1.0 * s.dirtied_bytes / nullif(s.all_bytes, 0) AS dirtied_share_ratio,
  w.lost_gaps_count
FROM shared AS s
CROSS JOIN wb_bounds AS b
JOIN wb_window AS w ON w.window_index = s.window_index
JOIN life AS l ON l.task_id = s.task_id
WHERE s.lived = 1
ORDER BY w.window_start_ns, l.tid, l.task_id;

-- @view     _throttle_piece
-- @summary  Sleeps of throttled tasks, taken as starting at their event (or
--   where the call waited, if that was before), cut at the borders of windows.
-- @grain    piece of a sleep within one window; order tid, from_ts
-- @column   from_ts INTEGER ns, start of the piece
-- @column   to_ts INTEGER ns, end of the piece
CREATE VIEW _throttle_piece AS
WITH
  sleep AS (
    SELECT
      t.tid, t.task_id, t.bdi, t.cgroup_ino,
      min(t.sleep_ts, t.ts) AS ts,
      t.slept_ns
    FROM wb_throttle_pause AS t
    WHERE t.slept_ns > 0
    UNION ALL
    SELECT w.tid, t.task_id, w.device, NULL, w.ts, w.end_ts - w.ts
    FROM wb_call AS w
    LEFT JOIN wb_task AS t ON task_of!(t, w)
    WHERE w.call = 'balance_dirty_pages_waiting' AND w.end_ts > w.ts
  )
SELECT
  w.window_index, s.tid, s.task_id, s.bdi, s.cgroup_ino,
  max(s.ts, w.window_start_ns) AS from_ts,
  min(s.ts + s.slept_ns, w.window_end_ns, b.end_ts) AS to_ts,
  s.slept_ns
FROM sleep AS s
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
CROSS JOIN wb_window AS w
WHERE touches!(s.ts, s.ts + s.slept_ns, w, b, p);
