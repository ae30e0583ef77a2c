-- SPDX-License-Identifier: Apache-2.0
-- @query    findings_by_kernel
-- @title    What is wrong on which kernel
-- @summary  Each finding by release: in what share of the runs of that kernel.
-- @grain    finding, severity, kernel; order id, severity, kernel
-- @keys     id, severity, kernel
-- @first    runs_ratio, cost_task_ns
-- @column   id TEXT rule, a file of sql/findings
-- @column   severity TEXT severe or warning
-- @column   kernel TEXT release
-- @column   runs_count INTEGER runs with it on this kernel
-- @column   of_runs_count INTEGER all runs of this kernel
-- @column   runs_ratio REAL share of them
-- @column   hosts_count INTEGER machines with it
-- @column   cost_task_ns INTEGER time that tasks lost to it
WITH
  total AS (
    SELECT r.kernel, count(*) AS runs_count FROM runs AS r GROUP BY r.kernel
  )
SELECT
  f.id, f.severity, f.kernel,
  count(DISTINCT f.run) AS runs_count,
  max(t.runs_count) AS of_runs_count,
  CAST(count(DISTINCT f.run) AS DOUBLE) / max(t.runs_count) AS runs_ratio,
  count(DISTINCT f.host) AS hosts_count,
  CAST(coalesce(sum(f.cost_task_ns), 0) AS BIGINT) AS cost_task_ns
FROM findings AS f
INNER JOIN total AS t ON t.kernel = f.kernel
WHERE f.severity IN ('severe', 'warning')
GROUP BY f.id, f.severity, f.kernel
ORDER BY f.id, f.severity, f.kernel;
