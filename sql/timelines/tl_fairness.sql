-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_fairness
-- @title    Fairness
-- @order    80
-- @group    Fairness: How evenly the throttled tasks of one bdi were treated,
--   in windows of 2 s.
-- @track    Jain's index of * [index]: 1 = all tasks were charged equal shares
--   in this window, 1/n = one of n had all
-- @summary  Jain's index of each window, by bdi and cgroup.
-- @grain    window, bdi, cgroup; order ts
-- @needs    wb_fairness_window
-- @events   writeback:balance_dirty_pages
CREATE VIEW tl_fairness AS
SELECT
  f.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Fairness/Jain''s index of '
    || replace(replace(f.bdi, '\', '\\'), '/', '\/')
    || CASE WHEN f.cgroup_ino > 1 THEN ' cgroup ' || f.cgroup_ino ELSE '' END
    AS track,
  NULL AS name,
  f.jain_ratio AS value,
  'ratio' AS unit
FROM wb_fairness_window AS f
WHERE f.jain_ratio IS NOT NULL;
