-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_piece
-- @summary  Sleeps of throttled tasks, taken as starting at their event (or
--   where the call waited, if that was before), cut at the borders of windows.
-- @grain    piece of a sleep within one window; order tid, from_ts
-- @needs    wb_throttle_charge, wb_completion_wait, wb_window, wb_bounds,
--   wb_params
-- @events   writeback:balance_dirty_pages|
--   writeback:writeback_balance_dirty_pages_waiting
-- @column   window_index INTEGER of wb_window
-- @column   tid INTEGER thread
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   from_ts INTEGER ns, start of the piece
-- @column   to_ts INTEGER ns, end of the piece
-- @column   slept_ns INTEGER of the whole sleep
CREATE VIEW wb_throttle_piece AS
WITH
  grid AS (
    SELECT b.start_ts, b.end_ts, p.window_ns
    FROM wb_bounds AS b
    CROSS JOIN wb_params AS p
  ),
  sleep AS (
    SELECT
      t.tid,
      t.task_id,
      t.bdi,
      t.cgroup_ino,
      CASE WHEN t.sleep_ts < t.ts THEN t.sleep_ts ELSE t.ts END AS ts,
      t.slept_ns
    FROM wb_throttle_charge AS t
    WHERE t.slept_ns > 0
    UNION ALL
    SELECT w.tid, w.task_id, w.bdi, NULL, w.ts, w.slept_ns
    FROM wb_completion_wait AS w
    WHERE w.slept_ns > 0
  ),
  clipped AS (
    SELECT
      t.tid,
      t.task_id,
      t.bdi,
      t.cgroup_ino,
      CASE WHEN t.ts < g.start_ts THEN g.start_ts ELSE t.ts END AS from_ts,
      CASE
        WHEN t.ts + t.slept_ns > g.end_ts THEN g.end_ts
        ELSE t.ts + t.slept_ns
      END AS to_ts,
      t.slept_ns
    FROM sleep AS t
    CROSS JOIN grid AS g
    WHERE t.ts + t.slept_ns > g.start_ts
      AND t.ts < g.end_ts
  )
SELECT
  w.window_index,
  c.tid,
  c.task_id,
  c.bdi,
  c.cgroup_ino,
  CASE WHEN c.from_ts < w.window_start_ns THEN w.window_start_ns
    ELSE c.from_ts
  END AS from_ts,
  CASE WHEN c.to_ts > w.window_end_ns THEN w.window_end_ns ELSE c.to_ts END
    AS to_ts,
  c.slept_ns
FROM clipped AS c
CROSS JOIN grid AS g
CROSS JOIN wb_window AS w
WHERE w.window_index >= (c.from_ts - g.start_ts) / g.window_ns
  AND w.window_index <= (c.to_ts - 1 - g.start_ts) / g.window_ns;
