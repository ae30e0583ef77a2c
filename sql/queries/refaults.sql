-- SPDX-License-Identifier: Apache-2.0
-- Reclaim.

-- @query    refaults
-- @title    What was read again
-- @summary  How much of what was read from disks had been in memory before, and
--   was dropped by reclaim.
-- @read     From /proc/vmstat before and after the run, of the whole machine.
--   refault_ratio near 1: nearly all that was read was read again, so what
--   programs read does not fit beside the rest. Up to 5.8 pages of swap count,
--   too.
-- @grain    one row
-- @column   refault_bytes INTEGER read again after reclaim had dropped it
--   (workingset_refault_file; up to 5.8 workingset_refault)
-- @column   read_bytes INTEGER all that was read, swap among it (pgpgin)
-- @column   refault_ratio REAL refault over read
-- @metric   refault_ratio lower: share of what was read that reclaim had
--   dropped from memory before
-- @source   mm/workingset.c workingset_refault(); mm/vmstat.c
WITH
  gained AS (
    SELECT
      max(CASE v.name WHEN 'workingset_refault_file' THEN v.gained_count END)
        AS of_files,
      max(CASE v.name WHEN 'workingset_refault' THEN v.gained_count END)
        AS of_all,
      max(CASE v.name WHEN 'pgpgin' THEN v.gained_count END) AS pgpgin
    FROM wb_vmstat AS v
    WHERE v.name IN ('workingset_refault_file', 'workingset_refault', 'pgpgin')
    HAVING count(v.gained_count) > 1
  )
SELECT
  coalesce(g.of_files, g.of_all) * u.page_bytes AS refault_bytes,
  g.pgpgin * u.kib_bytes AS read_bytes,
  1.0 * coalesce(g.of_files, g.of_all) * u.page_bytes
    / nullif(g.pgpgin * u.kib_bytes, 0) AS refault_ratio
FROM gained AS g
CROSS JOIN wb_units AS u
ORDER BY refault_bytes;
