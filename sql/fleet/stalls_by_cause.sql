-- SPDX-License-Identifier: Apache-2.0
-- @query    stalls_by_cause
-- @title    Waits by cause
-- @summary  Where tasks of all runs were blocked, and how long a wait took:
--   quantiles over waits, nearest rank.
-- @grain    kind, cause; order total_ns descending
-- @keys     kind, cause
-- @first    total_ns, share_ratio
-- @column   kind TEXT of wait
-- @column   cause TEXT why the task waited
-- @column   runs_count INTEGER runs that have such waits
-- @column   hosts_count INTEGER their machines
-- @column   stalls_count INTEGER waits
-- @column   total_ns INTEGER sum of their own times
-- @column   share_ratio REAL share of the time of all waits
-- @column   dur_p50_ns INTEGER median of their own times
-- @column   dur_p95_ns INTEGER nearest rank
-- @column   dur_p99_ns INTEGER nearest rank
-- @column   dur_max_ns INTEGER longest
WITH
  ranked AS (
    SELECT
      s.kind,
      coalesce(s.cause, 'unknown') AS cause,
      s.run, s.host, s.dur,
      ROW_NUMBER() OVER (
        PARTITION BY s.kind, coalesce(s.cause, 'unknown') ORDER BY s.dur
      ) AS place,
      count(*) OVER (PARTITION BY s.kind, coalesce(s.cause, 'unknown')) AS n
    FROM stalls AS s
    WHERE s.dur IS NOT NULL
  ),
  total AS (SELECT sum(s.dur) AS ns FROM stalls AS s)
SELECT
  k.kind, k.cause,
  count(DISTINCT k.run) AS runs_count,
  count(DISTINCT k.host) AS hosts_count,
  count(*) AS stalls_count,
  CAST(sum(k.dur) AS BIGINT) AS total_ns,
  CASE
    WHEN max(t.ns) > 0
      THEN CAST(sum(k.dur) AS DOUBLE) / CAST(max(t.ns) AS DOUBLE)
  END AS share_ratio,
  min(CASE WHEN 2 * k.place >= k.n THEN k.dur END) AS dur_p50_ns,
  min(CASE WHEN 20 * k.place >= 19 * k.n THEN k.dur END) AS dur_p95_ns,
  min(CASE WHEN 100 * k.place >= 99 * k.n THEN k.dur END) AS dur_p99_ns,
  max(k.dur) AS dur_max_ns
FROM ranked AS k
CROSS JOIN total AS t
GROUP BY k.kind, k.cause
ORDER BY total_ns DESC, k.kind, k.cause;
