-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    task_progress
-- @title    How far each task has come
-- @summary  What each throttled task dirtied in each window, and since the
--   start.
-- @read     Equal slopes of dirtied_so_far mean that tasks are treated alike; a
--   flat piece is a task that was blocked or wanted nothing. Windows in which a
--   task dirtied nothing have no row: it stays where it was. basis says how
--   good the bytes are, best first: folio, probe, proc_io, fio, syscalls,
--   calibrated, and bound, which misses what was dirtied in free run.
-- @filters  window, range, bdi, tid, task, cgroup
-- @grain    window, task under a name; order window_start_ns, tid
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, wbscope:balance_dirty_pages_entry
-- @column   window_end_ts INTEGER trace clock, end of the window, or of the
--   time asked for: dirtied_so_far is what it had then
-- @column   dirtied_bytes REAL in the window
-- @column   dirtied_so_far_bytes REAL since the start of the run, or of the
--   time asked for
-- @column   dirtied_basis TEXT where the bytes are from; as in fairness
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @source   graph balance_dirty_pages-task-bw of 2011-02; docs/fairness.md
-- @cost     110
WITH
  basis AS (
    SELECT d.task_id, min(d.basis) AS dirtied_basis
    FROM wb_task_dirtied AS d
    GROUP BY d.task_id
  ),
  -- Once: with the filters in it SQLite would go over the parts again.
  summed AS MATERIALIZED (
    SELECT
      d.window_index, d.task_id,
      sum(d.dirtied_bytes) AS dirtied_bytes
    FROM wb_dirtied_part AS d
    CROSS JOIN wb_params AS p
    WHERE of_wb!(d, p)
      AND (p.tid IS NULL OR d.tid = p.tid)
      AND d.dirtied_bytes > 0
    GROUP BY d.window_index, d.task_id
  )
SELECT
  w.window_start_ns, k.tid, k.comm,
  min(w.window_end_ns, b.end_ts) AS window_end_ts,
  s.dirtied_bytes,
  sum(s.dirtied_bytes) OVER (
    PARTITION BY s.task_id ORDER BY s.window_index ROWS UNBOUNDED PRECEDING
  ) AS dirtied_so_far_bytes,
  a.dirtied_basis,
  w.lost_gaps_count
FROM summed AS s
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
JOIN wb_window AS w ON w.window_index = s.window_index
JOIN wb_task AS k ON k.task_id = s.task_id
JOIN basis AS a ON a.task_id = s.task_id
WHERE p.comm_glob IS NULL OR k.comm GLOB p.comm_glob
ORDER BY w.window_start_ns, k.tid, k.task_id;
