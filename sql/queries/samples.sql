-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled.

-- @query    samples
-- @title    Every sampled counter
-- @summary  Lowest, highest and mean value of every counter that was sampled
--   and moved.
-- @read     With --window a row for each window. Most counters only grow, from
--   the boot of the machine: spread_value is what such a one gained.
-- @filters  window, range
-- @grain    window, source, object, counter; order window_start_ns, source,
--   object, name
-- @keys     window_start_ns, source, object, name
-- @column   window_start_ns INTEGER trace clock; without --window the start of
--   the run
-- @column   source TEXT block, bdi, wb, psi, cgroup, vmstat, meminfo, zoneinfo
-- @column   object TEXT disk, bdi, resource, cgroup or zone; NULL = the machine
-- @column   name TEXT counter
-- @column   unit TEXT bytes, bytes/s, ns, pages or count, of all values
-- @column   samples_count INTEGER samples
-- @column   least_value INTEGER lowest
-- @column   most_value INTEGER highest
-- @column   spread_value INTEGER highest less lowest
-- @column   mean_value REAL mean of the samples
WITH
  placed AS (
    SELECT b.start_ts
        + CASE p.by_window
          WHEN 1 THEN (s.ts - b.start_ts) / p.window_ns * p.window_ns
            - CASE WHEN (s.ts - b.start_ts) % p.window_ns < 0
              THEN p.window_ns ELSE 0 END
          ELSE 0
        END AS window_start_ns,
      s.source, s.object, s.name, s.unit, s.value
    FROM wb_sample AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_range!(s.ts, p)
  ),
  summed AS (
    SELECT
      r.window_start_ns, r.source, r.object, r.name,
      max(r.unit) AS unit,
      count(*) AS samples_count,
      min(r.value) AS least_value,
      max(r.value) AS most_value,
      avg(r.value) AS mean_value
    FROM placed AS r
    GROUP BY r.window_start_ns, r.source, r.object, r.name
    HAVING min(r.value) < max(r.value)
  )
SELECT
  s.window_start_ns, s.source, s.object, s.name, s.unit, s.samples_count,
  s.least_value, s.most_value,
  s.most_value - s.least_value AS spread_value,
  s.mean_value
FROM summed AS s
ORDER BY s.window_start_ns, s.source, s.object, s.name;
