-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_fairness
-- @title    Fairness of each bdi
-- @order    80
-- @group    Fairness
-- @track    Jain's index of *: in % of each window, as query fairness has it
--   with --window, of those that wrote all through it and asked for more than
--   they got; no bar: nothing to compare
-- @summary  Jain's index of each window, by bdi and cgroup.
-- @grain    window, bdi, cgroup; order ts
-- @flat
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   arg_why TEXT in a sentence
-- @column   arg_jain_ratio REAL as in wb_fairness_window
-- @column   arg_tasks_count INTEGER tasks that are compared
CREATE VIEW tl_fairness AS
SELECT
  f.window_start_ns AS ts,
  min(w.window_end_ns, b.end_ts) - f.window_start_ns AS dur,
  'Writeback/Fairness/Jain''s index of '
    || replace(
      replace(coalesce(d.device || ' ', '') || f.bdi, '\', '\\'),
      '/',
      '\/'
    )
    || CASE WHEN f.cgroup_ino > 1 THEN ' cgroup ' || f.cgroup_ino ELSE '' END
    AS track,
  'Jain ' || CAST(round(100 * f.jain_ratio) AS INTEGER) || ' %' AS name,
  NULL AS value,
  NULL AS unit,
  f.tasks_count || ' tasks dirtied pages; Jain''s index of fairness is '
    || printf('%.1f %%', 100 * f.jain_ratio) AS arg_why,
  f.jain_ratio AS arg_jain_ratio,
  f.tasks_count AS arg_tasks_count
FROM wb_fairness_window AS f
JOIN wb_window AS w ON w.window_start_ns = f.window_start_ns
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_device AS d ON d.bdi = f.bdi
WHERE f.tasks_count > 1 AND f.jain_ratio IS NOT NULL;
