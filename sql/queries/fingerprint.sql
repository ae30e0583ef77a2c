-- SPDX-License-Identifier: Apache-2.0
-- The run itself.

-- @query    fingerprint
-- @title    What runs must have in common
-- @summary  Facts about the machine and the recording; runs that differ in one
--   are not comparable.
-- @read     NULL is a fact that nothing recorded. dirty_thresh is the limit of
--   dirty pages in /proc/vmstat before the run: it follows vm.dirty_* and the
--   size of memory, and is a little different each time.
-- @grain    fact; order as listed
-- @keys     key
-- @column   key TEXT fact
-- @column   value TEXT its value; NULL = not known
WITH
  meta_key AS (
    SELECT 1 AS place, 'kernel' AS key, 'kernel_release' AS name
    UNION ALL SELECT 2, 'cpus_count', 'cpus_count'
    UNION ALL SELECT 3, 'page_bytes', 'page_bytes'
  ),
  memory_key AS (
    SELECT 5 AS place, 'memory_bytes' AS key, 'MemTotal' AS name
    UNION ALL SELECT 6, 'swap_bytes', 'SwapTotal'
  ),
  fact AS (
    SELECT k.place, k.key, m.value
    FROM meta_key AS k
    LEFT JOIN raw_meta AS m ON m.key = k.name
    UNION ALL
    SELECT 4, 'hz', nullif(s.value, 'unknown')
    FROM run_summary AS s
    WHERE s.key = 'hz'
    UNION ALL
    SELECT k.place, k.key, CAST(i.value * u.kib_bytes AS TEXT)
    FROM memory_key AS k
    CROSS JOIN wb_units AS u
    LEFT JOIN raw_meminfo AS i
      ON i.name = k.name AND i.sample = 'before' AND i.unit = 'kB'
    UNION ALL
    SELECT
      7,
      'dirty_thresh_bytes',
      (
        SELECT CAST(v.value * u.page_bytes AS TEXT)
        FROM raw_vmstat AS v
        WHERE v.name = 'nr_dirty_threshold' AND v.sample = 'before'
      )
    FROM wb_units AS u
  )
SELECT f.key, CAST(f.value AS TEXT) AS value
FROM fact AS f
ORDER BY f.place;
