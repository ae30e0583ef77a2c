-- SPDX-License-Identifier: Apache-2.0
-- @query    samples
-- @title    Every sampled counter
-- @order    62
-- @summary  First, last, lowest and highest value of every counter that was
--   sampled and moved.
-- @read     With --window a row for each window. Counters that only grow do so
--   from the boot of the machine: gained_value says how much in the run.
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
-- @column   first_value INTEGER of the first sample
-- @column   last_value INTEGER of the last sample
-- @column   least_value INTEGER lowest
-- @column   most_value INTEGER highest
-- @column   gained_value INTEGER last less first
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
      first_value(r.value) OVER place AS began,
      last_value(r.value) OVER place AS ended
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
  max(o.began) AS first_value,
  max(o.ended) AS last_value,
  min(o.value) AS least_value,
  max(o.value) AS most_value,
  max(o.ended) - max(o.began) AS gained_value
FROM ordered AS o
JOIN wb_window AS w ON w.window_index = o.window_index
GROUP BY w.window_start_ns, o.source, o.object, o.name
HAVING min(o.value) <> max(o.value)
ORDER BY w.window_start_ns, o.source, o.object, o.name;
