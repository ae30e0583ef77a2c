-- SPDX-License-Identifier: Apache-2.0
-- @finding   read_again
-- @title     Files are read again and again
-- @summary   A fifth or more of what was read from disks had been in memory
--   before, and reclaim had dropped it: what programs read does not fit.
-- @severity  note
-- @confidence measured
-- @sentence  {refault_bytes} of the {read_bytes} that were read from disks had
--   been in memory before, and reclaim had dropped them
--   (workingset_refault_file).
-- @evidence  refaults: refault_bytes = max(refault_bytes); read_bytes =
--   max(read_bytes)
-- @column    cost_task_ns INTEGER 0
-- @column    refault_bytes INTEGER read again
-- @column   read_bytes INTEGER all that was read
-- @source    mm/workingset.c
SELECT
  0 AS cost_task_ns,
  -- Reads that began before are in one and not in the other.
  min(r.refault_bytes, r.read_bytes) AS refault_bytes,
  r.read_bytes
FROM refaults AS r
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
WHERE r.refault_bytes >= v.few_pages_count * u.page_bytes
  AND r.refault_bytes >= v.again_least_ratio * r.read_bytes
ORDER BY r.refault_bytes;
