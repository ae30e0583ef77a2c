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
-- @column   source TEXT block, bdi, wb (a cgroup's part of a bdi), psi, cgroup,
--   vmstat, meminfo or zoneinfo
-- @column   object TEXT disk; bdi; bdi/cgroup; resource; cgroup/file; node and
--   zone; NULL = the machine
-- @column   name TEXT counter, as the file has it; sectors and ticks of disks
--   are bytes and ns
-- @column   unit TEXT bytes, bytes/s, ns, pages or count, of all values
-- @column   samples_count INTEGER samples
-- @column   least_value INTEGER lowest
-- @column   most_value INTEGER highest
-- @column   spread_value INTEGER highest less lowest
-- @column   mean_value REAL mean of the samples
-- @source   Documentation/block/stat.rst, mm/backing-dev.c,
--   Documentation/accounting/psi.rst, Documentation/admin-guide/cgroup-v2.rst
WITH
  told AS (
    SELECT
      s.source, s.object,
      CASE
        WHEN s.source = 'block' AND s.name GLOB '*_sectors' THEN 'sectors'
        WHEN s.source = 'block'
          AND (s.name GLOB '*_ticks' OR s.name = 'time_in_queue') THEN 'ms'
        WHEN s.source = 'cgroup'
          AND (s.object GLOB '*memory.[scmh]*' OR s.name GLOB '* [rwd]bytes')
          THEN 'bytes'
        ELSE s.unit
      END AS unit,
      s.name, s.ts, s.value
    FROM raw_sample AS s
    WHERE s.sample = 'sampled'
      AND s.name NOT IN ('state', 'bdi_list')
    UNION ALL
    SELECT
      'meminfo',
      NULL, m.unit, m.name, m.ts, m.value
    FROM raw_meminfo AS m
    WHERE m.ts IS NOT NULL
    UNION ALL
    SELECT
      'vmstat',
      NULL,
      CASE WHEN v.name GLOB 'nr_*' THEN 'pages' END,
      v.name, v.ts, v.value
    FROM raw_vmstat AS v
    WHERE v.ts IS NOT NULL
    UNION ALL
    SELECT
      'zoneinfo',
      'node ' || z.node || coalesce(' ' || z.zone, ''),
      'pages',
      z.name, z.ts, z.value
    FROM raw_zoneinfo AS z
    WHERE z.sample = 'sampled'
  ),
  converted AS (
    SELECT
      t.source, t.object,
      CASE t.unit
        WHEN 'sectors' THEN replace(t.name, '_sectors', '_bytes')
        ELSE t.name
      END AS name,
      t.ts,
      t.value * CASE t.unit
        WHEN 'kB' THEN u.kib_bytes
        WHEN 'kBps' THEN u.kib_bytes
        WHEN 'sectors' THEN u.sector_bytes
        WHEN 'ms' THEN u.ms_ns
        WHEN 'us' THEN u.us_ns
        ELSE 1
      END AS value,
      CASE
        WHEN t.unit IN ('kB', 'sectors', 'bytes') THEN 'bytes'
        WHEN t.unit = 'kBps' THEN 'bytes/s'
        WHEN t.unit IN ('ms', 'us') THEN 'ns'
        WHEN t.unit = 'pages' THEN 'pages'
        ELSE 'count'
      END AS unit
    FROM told AS t
    CROSS JOIN wb_units AS u
  ),
  placed AS (
    SELECT b.start_ts
        + CASE p.by_window
          WHEN 1 THEN (s.ts - b.start_ts) / p.window_ns * p.window_ns
            - CASE WHEN (s.ts - b.start_ts) % p.window_ns < 0
              THEN p.window_ns ELSE 0 END
          ELSE 0
        END AS window_start_ns,
      s.source, s.object, s.name, s.unit, s.value
    FROM converted AS s
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
