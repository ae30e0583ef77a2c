-- SPDX-License-Identifier: Apache-2.0
-- @query    worst_hosts
-- @title    Machines that lose most time
-- @summary  Machines by the share of their runs with a severe finding, then by
--   the time that tasks lost in waits for each second of trace.
-- @grain    host; order as listed
-- @keys     host
-- @first    severe_ratio, lost_ratio
-- @column   host TEXT machine
-- @column   runs_count INTEGER its runs
-- @column   severe_ratio REAL share of them with a severe finding
-- @column   warning_ratio REAL share of them with a warning
-- @column   lost_ratio REAL time lost in waits over the time of its traces: 1 =
--   one task was blocked all the time
-- @column   lost_ns INTEGER time lost in waits, all tasks and runs together
-- @column   pause_p99_max_ns INTEGER the largest pause_p99_ns of its runs
-- @column   run TEXT the run that lost most
WITH
  told AS (
    SELECT
      f.run,
      max(CASE WHEN f.severity = 'severe' THEN 1 ELSE 0 END) AS is_severe,
      max(CASE WHEN f.severity = 'warning' THEN 1 ELSE 0 END) AS is_warning
    FROM findings AS f
    GROUP BY f.run
  ),
  lost AS (
    SELECT l.run, CAST(sum(l.total_ns) AS BIGINT) AS lost_ns
    FROM lost_time AS l
    GROUP BY l.run
  ),
  pause AS (
    SELECT s.run, max(s.pause_p99_ns) AS pause_p99_ns
    FROM throttle_summary AS s
    GROUP BY s.run
  ),
  one AS (
    SELECT
      r.host, r.run, r.duration_ns,
      coalesce(t.is_severe, 0) AS is_severe,
      coalesce(t.is_warning, 0) AS is_warning,
      coalesce(l.lost_ns, 0) AS lost_ns,
      p.pause_p99_ns,
      ROW_NUMBER() OVER (
        PARTITION BY r.host ORDER BY coalesce(l.lost_ns, 0) DESC, r.run
      ) AS place
    FROM runs AS r
    LEFT JOIN told AS t ON t.run = r.run
    LEFT JOIN lost AS l ON l.run = r.run
    LEFT JOIN pause AS p ON p.run = r.run
  )
SELECT
  o.host,
  count(*) AS runs_count,
  CAST(sum(o.is_severe) AS DOUBLE) / count(*) AS severe_ratio,
  CAST(sum(o.is_warning) AS DOUBLE) / count(*) AS warning_ratio,
  CASE
    WHEN sum(o.duration_ns) > 0
      THEN CAST(sum(o.lost_ns) AS DOUBLE) / CAST(sum(o.duration_ns) AS DOUBLE)
  END AS lost_ratio,
  CAST(sum(o.lost_ns) AS BIGINT) AS lost_ns,
  max(o.pause_p99_ns) AS pause_p99_max_ns,
  max(CASE WHEN o.place = 1 THEN o.run END) AS run
FROM one AS o
GROUP BY o.host
ORDER BY severe_ratio DESC, lost_ratio DESC NULLS LAST, o.host;
