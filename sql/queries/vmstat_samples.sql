-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled.

-- @query    vmstat_samples
-- @title    Counters of /proc/vmstat over time
-- @summary  Levels and speeds of the counters of /proc/vmstat and /proc/meminfo
--   that tell of writeback and reclaim, from samples.
-- @read     Needs no event, but samples of wbscope record or of Perfetto. A
--   level is the mean of the window's samples, a speed what was gained between
--   two samples, a second apart as a rule; it counts in the window of the later
--   one. The query samples has every counter.
-- @filters  window, range
-- @grain    window, source, counter; order window_start_ns, source, name
-- @column   window_start_ns INTEGER trace clock; also before the first event
-- @column   source TEXT vmstat; meminfo only where vmstat was not sampled
-- @column   name TEXT counter
-- @column   samples_count INTEGER samples in the window
-- @column   level_bytes REAL mean; NULL = a counter that only grows
-- @column   gained_pages_per_s REAL what it gained; NULL = a level, or first
--   sample only
-- @column   gained_bytes_per_s REAL the same in bytes
-- @source   mm/vmstat.c vmstat_text
WITH
  told AS (
    SELECT
      'vmstat' AS source,
      s.name, s.ts, s.value,
      u.page_bytes AS unit_bytes,
      s.name IN (
        'nr_dirty', 'nr_writeback', 'nr_unstable', 'nr_free_pages',
        'nr_dirty_threshold', 'nr_dirty_background_threshold',
        'nr_inactive_file', 'nr_active_file'
      ) AS is_level
    FROM raw_vmstat AS s
    CROSS JOIN wb_units AS u
    WHERE s.ts IS NOT NULL
      AND s.name IN (
        'nr_dirty', 'nr_writeback', 'nr_unstable', 'nr_free_pages',
        'nr_dirty_threshold', 'nr_dirty_background_threshold',
        'nr_inactive_file', 'nr_active_file', 'nr_dirtied', 'nr_written',
        'nr_vmscan_write', 'pswpin', 'pswpout', 'pgscan_kswapd',
        'pgscan_direct', 'pgsteal_kswapd', 'pgsteal_direct'
      )
    UNION ALL
    SELECT
      'meminfo',
      m.name, m.ts, m.value,
      CASE m.unit WHEN 'kB' THEN u.kib_bytes ELSE u.page_bytes END,
      1
    FROM raw_meminfo AS m
    CROSS JOIN wb_units AS u
    WHERE m.ts IS NOT NULL
      AND m.name IN ('Dirty', 'Writeback', 'MemFree')
      -- The same again, with as much as vmstat tells.
      AND NOT EXISTS (SELECT 1 FROM raw_vmstat AS v WHERE v.ts IS NOT NULL)
  ),
  gained AS (
    SELECT
      t.*,
      t.value * t.unit_bytes AS value_bytes,
      t.ts - lag(t.ts) OVER counter AS passed_ns,
      ((t.value - lag(t.value) OVER counter + u.long_half) & u.long_mask)
        - u.long_half AS gained
    FROM told AS t
    CROSS JOIN wb_units AS u
    WINDOW counter AS (PARTITION BY t.source, t.name ORDER BY t.ts)
  ),
  -- Of these nr_dirtied alone may go back: pages that are redirtied.
  paired AS (
    SELECT
      g.*,
      CASE WHEN g.gained >= 0 OR g.name = 'nr_dirtied' THEN g.passed_ns END
        AS dur_ns,
      CASE WHEN g.gained >= 0 OR g.name = 'nr_dirtied'
        THEN g.gained * g.unit_bytes
      END AS gained_bytes
    FROM gained AS g
  ),
  placed AS (
    SELECT
      window_start!(s.ts, b, p) AS window_start_ns,
      s.*
    FROM paired AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_range!(s.ts, p)
  ),
  summed AS (
    SELECT
      s.window_start_ns, s.source, s.name, s.is_level,
      count(*) AS samples_count,
      avg(s.value_bytes) AS level_bytes,
      1.0 * sum(s.gained_bytes) / sum(s.dur_ns) AS gained_bytes_per_ns
    FROM placed AS s
    GROUP BY s.window_start_ns, s.source, s.name, s.is_level
  )
SELECT
  s.window_start_ns, s.source, s.name, s.samples_count,
  CASE WHEN s.is_level THEN s.level_bytes END AS level_bytes,
  CASE WHEN NOT s.is_level
    THEN s.gained_bytes_per_ns * u.second_ns / u.page_bytes
  END AS gained_pages_per_s,
  CASE WHEN NOT s.is_level THEN s.gained_bytes_per_ns * u.second_ns END
    AS gained_bytes_per_s
FROM summed AS s
CROSS JOIN wb_units AS u
ORDER BY s.window_start_ns, s.source, s.name;
