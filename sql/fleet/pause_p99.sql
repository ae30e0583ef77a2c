-- SPDX-License-Identifier: Apache-2.0
-- @query    pause_p99
-- @title    The long pauses of runs, by kernel
-- @summary  How pause_p99_ns of runs is spread: quantiles over runs, nearest
--   rank. Runs without a pause are left out.
-- @grain    kernel; order kernel
-- @keys     kernel
-- @column   kernel TEXT release
-- @column   runs_count INTEGER runs with a pause
-- @column   hosts_count INTEGER their machines
-- @column   p99_min_ns INTEGER the least pause_p99_ns of a run
-- @column   p99_p50_ns INTEGER median over runs
-- @column   p99_p90_ns INTEGER a tenth of the runs is above
-- @column   p99_max_ns INTEGER the largest
-- @column   run TEXT the run with the largest
-- @column   host TEXT its machine
WITH
  ranked AS (
    SELECT
      s.kernel, s.host, s.run,
      s.pause_p99_ns AS ns,
      ROW_NUMBER() OVER (
        PARTITION BY s.kernel ORDER BY s.pause_p99_ns, s.run
      ) AS place,
      count(*) OVER (PARTITION BY s.kernel) AS n
    FROM throttle_summary AS s
    WHERE s.pause_p99_ns IS NOT NULL
  )
SELECT
  k.kernel,
  count(*) AS runs_count,
  count(DISTINCT k.host) AS hosts_count,
  min(k.ns) AS p99_min_ns,
  min(CASE WHEN 2 * k.place >= k.n THEN k.ns END) AS p99_p50_ns,
  min(CASE WHEN 10 * k.place >= 9 * k.n THEN k.ns END) AS p99_p90_ns,
  max(k.ns) AS p99_max_ns,
  max(CASE WHEN k.place = k.n THEN k.run END) AS run,
  max(CASE WHEN k.place = k.n THEN k.host END) AS host
FROM ranked AS k
GROUP BY k.kernel
ORDER BY k.kernel;
