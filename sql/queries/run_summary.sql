-- SPDX-License-Identifier: Apache-2.0
-- The run itself.

-- @query    run_summary
-- @summary  What the run was: kernel, machine, clock, length, events.
-- @read     Facts about the recording that every number below depends on.
-- @grain    fact; order as listed
-- @keys     key
-- @column   key TEXT fact
WITH
  fact AS (
    SELECT 1 AS place, 'kernel' AS key, m.value
    FROM raw_meta AS m WHERE m.key = 'kernel_release'
    UNION ALL
    SELECT 2, 'source', m.value FROM raw_meta AS m WHERE m.key = 'source_name'
    UNION ALL
    SELECT 3, 'format', m.value FROM raw_meta AS m WHERE m.key = 'format'
    UNION ALL
    SELECT 4, 'clock', m.value FROM raw_meta AS m WHERE m.key = 'clock'
    UNION ALL
    SELECT 5, 'cpus', m.value FROM raw_meta AS m WHERE m.key = 'cpus_count'
    UNION ALL
    SELECT 6, 'page_bytes', m.value
    FROM raw_meta AS m WHERE m.key = 'page_bytes'
    UNION ALL
    SELECT 7, 'hz', coalesce(CAST(h.hz AS TEXT), 'unknown') FROM _hz AS h
    UNION ALL
    SELECT 8, 'memory_bytes', i.value * u.kib_bytes
    FROM raw_meminfo AS i
    CROSS JOIN wb_units AS u
    WHERE i.name = 'MemTotal' AND i.sample = 'before' AND i.unit = 'kB'
    UNION ALL
    SELECT 9, 'duration_ns', b.run_ns
    FROM wb_units AS b
    WHERE NOT EXISTS (
      SELECT 1
      FROM raw_meta AS m
      WHERE m.key = 'clock_unit' AND m.value = 'ticks'
    )
    UNION ALL
    SELECT 10, 'events_count', m.value
    FROM raw_meta AS m WHERE m.key = 'events_count'
    UNION ALL
    SELECT 11, 'tasks_count', count(*) FROM raw_task
    UNION ALL
    SELECT 12, 'lost_gaps_count', m.value
    FROM raw_meta AS m WHERE m.key = 'lost_gaps_count'
    UNION ALL
    SELECT 30, 'oom_kills_count', g.gained_count
    FROM wb_vmstat AS g
    WHERE g.name = 'oom_kill' AND g.gained_count > 0
  )
SELECT f.key, f.value
FROM fact AS f
WHERE f.value IS NOT NULL
ORDER BY f.place;

-- @view     _hz
-- @summary  The kernel's HZ: what the recorder read, else inferred from the
--   times of balance_dirty_pages, which are whole jiffies in ms. NULL where
--   fewer than three different times were seen, or they fit more than one HZ.
-- @grain    one row
-- @column   hz INTEGER jiffies in a second, or NULL
-- @source   mm/page-writeback.c: pause * 1000 / HZ, truncated
-- @materialize
-- @cost     33
CREATE VIEW _hz AS
WITH
  time_ms AS (
    SELECT t.pause AS ms
    FROM raw_balance_dirty_pages AS t
    WHERE is_step!(t) AND t.pause > 0
    UNION
    SELECT t.paused
    FROM raw_balance_dirty_pages AS t
    WHERE is_step!(t) AND t.paused > 0
    UNION
    SELECT t.period
    FROM raw_balance_dirty_pages AS t
    WHERE is_step!(t) AND t.period > 0
  ),
  known AS (
    SELECT
      -- Events are looked at only where that is not known. Times fit more than
      -- one HZ when all are multiples of 20 ms.
      coalesce(
        (SELECT CAST(m.value AS INTEGER) FROM raw_meta AS m WHERE m.key = 'hz'),
        (
          SELECT
            CASE
              WHEN count(*) < 3 OR max(t.ms % 20) = 0 THEN NULL
              WHEN max(t.ms % 10) = 0 THEN 100
              WHEN max(t.ms % 4) = 0 THEN 250
              WHEN min(t.ms % 10 IN (0, 3, 6)) = 1 THEN 300
              ELSE 1000
            END
          FROM time_ms AS t
        )
      ) AS hz
  )
SELECT k.hz
FROM known AS k;
