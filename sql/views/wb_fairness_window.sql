-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_fairness_window
-- @summary  Jain's index of what throttled tasks dirtied in each window.
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @needs    wb_throttle_charge, wb_bounds, wb_params, wb_window
-- @events   writeback:balance_dirty_pages
-- @column   window_start_ns INTEGER trace clock
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tasks_count INTEGER tasks that were charged pages in the window
-- @column   jain_ratio REAL 1 = equal shares, 1/n = one task has all
CREATE VIEW wb_fairness_window AS
WITH
  share AS (
    SELECT
      (t.ts - b.start_ts) / p.window_ns AS window_index,
      t.bdi,
      t.cgroup_ino,
      t.tid,
      t.task_id,
      1.0 * sum(t.accounted_bytes) AS bytes
    FROM wb_throttle_charge AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE t.ts >= b.start_ts AND t.ts < b.end_ts AND t.accounted_bytes > 0
    GROUP BY 1, t.bdi, t.cgroup_ino, t.tid, t.task_id
  ),
  per_window AS (
    SELECT
      s.window_index,
      s.bdi,
      s.cgroup_ino,
      count(*) AS tasks_count,
      sum(s.bytes) * sum(s.bytes)
        / nullif(count(*) * sum(s.bytes * s.bytes), 0) AS jain_ratio
    FROM share AS s
    GROUP BY s.window_index, s.bdi, s.cgroup_ino
  )
SELECT
  w.window_start_ns,
  f.bdi,
  f.cgroup_ino,
  f.tasks_count,
  f.jain_ratio
FROM per_window AS f
JOIN wb_window AS w ON w.window_index = f.window_index;
