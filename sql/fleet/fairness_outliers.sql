-- SPDX-License-Identifier: Apache-2.0
-- @query    fairness_outliers
-- @title    Where tasks were served least equally
-- @summary  The 20 rows of fairness with the lowest Jain's index. 1 = all tasks
--   of the device had the same rate, 1/n = one had all.
-- @grain    run, bdi, cgroup; order jain_ratio
-- @keys     host, run, bdi, cgroup_ino
-- @first    jain_ratio, slowest_to_fastest_ratio
-- @column   host TEXT machine
-- @column   kernel TEXT release
-- @column   run TEXT run
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tasks_count INTEGER tasks compared
-- @column   jain_ratio REAL Jain's index of the rates
-- @column   slowest_to_fastest_ratio REAL slowest rate over fastest
-- @column   task_rates TEXT comm-tid=bytes/s of each task, slowest first
SELECT
  f.host, f.kernel, f.run, f.bdi, f.cgroup_ino, f.tasks_count, f.jain_ratio,
  f.slowest_to_fastest_ratio, f.task_rates
FROM fairness AS f
WHERE f.tasks_count > 1 AND f.jain_ratio IS NOT NULL
ORDER BY
  f.jain_ratio, f.run,
  f.bdi NULLS LAST,
  f.cgroup_ino NULLS LAST
LIMIT 20;
