-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_task_share
-- @title    Shares of each task
-- @order    81
-- @group    Fairness
-- @track    throttled share of * [share]: part of the window that the task
--   slept in balance_dirty_pages(), as throttle_windows has it
-- @track    dirtied share of * [share]: its part of what all throttled tasks
--   dirtied in the window, by the source that Task progress names
-- @summary  The share of each window that each task was throttled, and its
--   share of what throttled tasks dirtied.
-- @grain    window, task; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @cost     140
CREATE VIEW tl_task_share AS
WITH
  throttled AS (
    SELECT DISTINCT t.task_id FROM wb_throttle_total AS t
  ),
  cell AS (
    SELECT w.window_index, t.task_id, 0 AS slept_ns, 0 AS dirtied_bytes
    FROM throttled AS t
    -- All of them: a curve keeps its value until it is told another.
    CROSS JOIN wb_window AS w
    UNION ALL
    SELECT s.window_index, s.task_id, s.to_ts - s.from_ts, 0
    FROM wb_throttle_piece AS s
    UNION ALL
    SELECT d.window_index, d.task_id, 0, d.dirtied_bytes
    FROM wb_dirtied_part AS d
  ),
  summed AS (
    SELECT
      c.window_index, c.task_id,
      sum(c.slept_ns) AS slept_ns,
      sum(c.dirtied_bytes) AS dirtied_bytes
    FROM cell AS c
    GROUP BY c.window_index, c.task_id
  ),
  shared AS (
    SELECT
      s.*,
      sum(s.dirtied_bytes) OVER (PARTITION BY s.window_index) AS all_bytes
    FROM summed AS s
  ),
  curve(place, name) AS (
    SELECT 0, 'throttled share of '
    UNION ALL SELECT 1, 'dirtied share of '
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Fairness/' || c.name || k.path AS track,
  NULL AS name,
  CASE c.place
    WHEN 0
      THEN 1.0 * s.slept_ns
        / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    WHEN 1
      THEN coalesce(1.0 * s.dirtied_bytes / nullif(s.all_bytes, 0), 0)
  END AS value,
  'ratio' AS unit,
  s.task_id AS rank
FROM shared AS s
JOIN wb_window AS w ON w.window_index = s.window_index
JOIN wb_task_label AS k ON k.task_id = s.task_id
CROSS JOIN wb_bounds AS b
CROSS JOIN curve AS c;
