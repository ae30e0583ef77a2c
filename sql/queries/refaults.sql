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
-- @column   read_bytes INTEGER all that was read, swap among it
-- @column   refault_ratio REAL refault over read
-- @metric   refault_ratio lower: share of what was read that reclaim had
--   dropped from memory before
-- @source   mm/workingset.c
SELECT
  r.refault_bytes, r.read_bytes,
  1.0 * r.refault_bytes / nullif(r.read_bytes, 0) AS refault_ratio
FROM wb_refault AS r
ORDER BY r.refault_bytes;
