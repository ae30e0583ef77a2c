-- SPDX-License-Identifier: Apache-2.0
-- @query    trend
-- @title    By release, in the order in which they came
-- @summary  Each kernel from the day of its first run on: time lost, long
--   pauses (median over runs, nearest rank) and severe findings.
-- @read     Machines and workloads differ between releases: this says where
--   to look; `fleet gate` judges.
-- @grain    kernel; order first_date, kernel
-- @keys     kernel
-- @column   kernel TEXT release
-- @column   first_date TEXT day of its first run; NULL = not known
-- @column   last_date TEXT day of its last
-- @column   runs_count INTEGER runs
-- @column   hosts_count INTEGER machines
-- @column   severe_ratio REAL share of the runs with a severe finding
-- @column   lost_ratio REAL time lost in waits over the time of the traces
-- @column   pause_p99_p50_ns INTEGER median over runs of pause_p99_ns
WITH
  told AS (
    SELECT DISTINCT f.run FROM findings AS f WHERE f.severity = 'severe'
  ),
  lost AS (
    SELECT l.run, sum(l.total_ns) AS lost_ns FROM lost_time AS l GROUP BY l.run
  ),
  pause AS (
    SELECT
      s.kernel,
      s.pause_p99_ns AS ns,
      ROW_NUMBER() OVER (
        PARTITION BY s.kernel ORDER BY s.pause_p99_ns, s.run
      ) AS place,
      count(*) OVER (PARTITION BY s.kernel) AS n
    FROM throttle_summary AS s
    WHERE s.pause_p99_ns IS NOT NULL
  ),
  middle AS (
    SELECT p.kernel, min(CASE WHEN 2 * p.place >= p.n THEN p.ns END) AS ns
    FROM pause AS p
    GROUP BY p.kernel
  )
SELECT
  r.kernel,
  min(CASE WHEN r.date <> 'unknown' THEN r.date END) AS first_date,
  max(CASE WHEN r.date <> 'unknown' THEN r.date END) AS last_date,
  count(*) AS runs_count,
  count(DISTINCT r.host) AS hosts_count,
  CAST(count(t.run) AS DOUBLE) / count(*) AS severe_ratio,
  CASE
    WHEN sum(r.duration_ns) > 0
      THEN CAST(coalesce(sum(l.lost_ns), 0) AS DOUBLE)
        / CAST(sum(r.duration_ns) AS DOUBLE)
  END AS lost_ratio,
  max(m.ns) AS pause_p99_p50_ns
FROM runs AS r
LEFT JOIN told AS t ON t.run = r.run
LEFT JOIN lost AS l ON l.run = r.run
LEFT JOIN middle AS m ON m.kernel = r.kernel
GROUP BY r.kernel
ORDER BY first_date NULLS LAST, r.kernel;
