-- SPDX-License-Identifier: Apache-2.0
-- @query    problems
-- @title    What is wrong, in how many runs, what it cost
-- @summary  Findings over all runs: by severity, then by the time that tasks
--   lost. The example is the run where it cost most.
-- @grain    severity, finding; order as listed
-- @keys     severity, id
-- @first    runs_ratio, cost_task_ns
-- @column   severity TEXT severe, warning or note
-- @column   id TEXT rule, a file of sql/findings
-- @column   runs_count INTEGER runs that have it
-- @column   runs_ratio REAL share of all runs
-- @column   hosts_count INTEGER machines that have it
-- @column   cost_task_ns INTEGER time that tasks lost to it, all runs together
-- @column   run TEXT the run where it cost most
-- @column   host TEXT its machine
-- @column   text TEXT what it is there
-- @column   advice TEXT what to change there
WITH
  ranked AS (
    SELECT
      f.severity, f.id, f.run, f.host, f.cost_task_ns, f.text, f.advice,
      ROW_NUMBER() OVER (
        PARTITION BY f.severity, f.id
        ORDER BY coalesce(f.cost_task_ns, 0) DESC, f.run
      ) AS place
    FROM findings AS f
    WHERE f.severity IN ('severe', 'warning', 'note')
  ),
  total AS (SELECT count(*) AS runs_count FROM runs)
SELECT
  k.severity, k.id,
  count(DISTINCT k.run) AS runs_count,
  CAST(count(DISTINCT k.run) AS DOUBLE) / max(t.runs_count) AS runs_ratio,
  count(DISTINCT k.host) AS hosts_count,
  CAST(coalesce(sum(k.cost_task_ns), 0) AS BIGINT) AS cost_task_ns,
  max(CASE WHEN k.place = 1 THEN k.run END) AS run,
  max(CASE WHEN k.place = 1 THEN k.host END) AS host,
  max(CASE WHEN k.place = 1 THEN k.text END) AS text,
  max(CASE WHEN k.place = 1 THEN k.advice END) AS advice
FROM ranked AS k
CROSS JOIN total AS t
GROUP BY k.severity, k.id
ORDER BY
  CASE k.severity WHEN 'severe' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END,
  coalesce(sum(k.cost_task_ns), 0) DESC,
  k.id;
