-- SPDX-License-Identifier: Apache-2.0
-- @query    samples
-- @title    Every sampled counter
-- @order    62
-- @summary  First, last, lowest and highest value of every counter that was
--   sampled and moved.
-- @read     With --window a row for each window. Counters that only grow do so
--   from the boot of the machine: gained says how much in the run.
-- @filters  window, range
-- @grain    window, source, object, counter; order window_start_ns, source,
--   object, name
-- @needs    wb_sample, wb_window, wb_bounds, wb_params
-- @column   window_start_ns INTEGER trace clock; without --window the start of
--   the run
-- @column   source TEXT block, bdi, wb, psi, cgroup, vmstat, meminfo, zoneinfo
-- @column   object TEXT disk, bdi, resource, cgroup or zone; NULL = the machine
-- @column   name TEXT counter
-- @column   unit TEXT bytes, bytes/s, ns, pages or count, of all values
-- @column   samples_count INTEGER samples
-- @column   first INTEGER first value
-- @column   last INTEGER last value
-- @column   lowest INTEGER lowest value
-- @column   highest INTEGER highest value
-- @column   gained INTEGER last less first
WITH
  placed AS (
    SELECT
      CASE p.by_window WHEN 1 THEN (s.ts - b.start_ts) / p.window_ns ELSE 0 END
        AS window_index,
      s.*
    FROM wb_sample AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE s.ts >= b.start_ts AND s.ts < b.end_ts
  ),
  ordered AS (
    SELECT
      r.*,
      first_value(r.value) OVER place AS first_value,
      last_value(r.value) OVER place AS last_value
    FROM placed AS r
    WINDOW place AS (
      PARTITION BY r.window_index, r.source, r.object, r.name ORDER BY r.ts
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
  )
SELECT
  w.window_start_ns,
  o.source,
  o.object,
  o.name,
  max(o.unit) AS unit,
  count(*) AS samples_count,
  max(o.first_value) AS first,
  max(o.last_value) AS last,
  min(o.value) AS lowest,
  max(o.value) AS highest,
  max(o.last_value) - max(o.first_value) AS gained
FROM ordered AS o
JOIN wb_window AS w ON w.window_index = o.window_index
GROUP BY w.window_start_ns, o.source, o.object, o.name
HAVING min(o.value) <> max(o.value)
ORDER BY w.window_start_ns, o.source, o.object, o.name;
