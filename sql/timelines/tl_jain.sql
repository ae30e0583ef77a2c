-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_jain
-- @title    How fair
-- @order    79
-- @group    Fairness: Jain's index of each window of 2 s, in %: 100 = all tasks
--   of a bdi were charged equal shares, 25 = one of four had all. Where several
--   bdis had writers, the least even one. No bar: nothing to compare.
-- @parent
-- @summary  Jain's index of each window, of the least even bdi or cgroup.
-- @grain    window; order ts
-- @needs    wb_fairness_window, wb_window, wb_bounds
-- @events   writeback:balance_dirty_pages
-- @column   arg_why TEXT in a sentence
-- @column   arg_jain_ratio REAL as in wb_fairness_window
-- @column   arg_tasks_count INTEGER tasks that dirtied pages
-- @column   arg_bdi TEXT backing device
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
CREATE VIEW tl_jain AS
WITH
  ranked AS (
    SELECT
      f.*,
      row_number() OVER (
        PARTITION BY f.window_start_ns
        ORDER BY f.jain_ratio, f.bdi, f.cgroup_ino
      ) AS place
    FROM wb_fairness_window AS f
    WHERE f.tasks_count > 1 AND f.jain_ratio IS NOT NULL
  )
SELECT
  r.window_start_ns AS ts,
  min(w.window_end_ns, b.end_ts) - r.window_start_ns AS dur,
  'Writeback/Fairness' AS track,
  'Jain ' || CAST(round(100 * r.jain_ratio) AS INTEGER) || ' %' AS name,
  NULL AS value,
  NULL AS unit,
  r.tasks_count || ' tasks dirtied pages of ' || r.bdi || ' with '
    || printf('%.1f %%', 100 * r.jain_ratio) || ' of equal shares' AS arg_why,
  r.jain_ratio AS arg_jain_ratio,
  r.tasks_count AS arg_tasks_count,
  r.bdi AS arg_bdi,
  r.cgroup_ino AS arg_cgroup_ino
FROM ranked AS r
JOIN wb_window AS w ON w.window_start_ns = r.window_start_ns
CROSS JOIN wb_bounds AS b
WHERE r.place = 1;
