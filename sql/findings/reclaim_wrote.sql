-- SPDX-License-Identifier: Apache-2.0
-- @finding   reclaim_wrote
-- @title     Whether reclaim had to write
-- @summary   Pages that reclaim itself sent to writeback: nr_vmscan_write,
--   which counts attempts.
-- @severity  fact
-- @confidence measured
-- @sentence  Reclaim itself sent {pages_count} pages to writeback
--   (nr_vmscan_write)[, {device_count} of them to the swap device][ and
--   {file_count} to files].
-- @evidence  mmtests_vmstat: pages_count = max(value,
--   name=Page writes by reclaim)
-- @evidence  reclaim_destinations: device_count = max(pages_count,
--   destination=swap device); file_count = max(pages_count, destination=file)
-- @optional  vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
-- @column    cost_task_ns INTEGER 0
-- @column    pages_count INTEGER pages that nr_vmscan_write gained
-- @column    device_count INTEGER pages for the swap device; NULL = none, or
--   not known
-- @column    file_count INTEGER pages for files; NULL = none, or not known
-- @source    mm/vmscan.c pageout()
SELECT
  0 AS cost_task_ns,
  d.all_count AS pages_count,
  nullif(d.device_count, 0) AS device_count,
  nullif(d.file_count, 0) AS file_count
FROM reclaim_run AS d
WHERE d.all_count IS NOT NULL
ORDER BY d.all_count;
