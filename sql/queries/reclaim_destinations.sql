-- SPDX-License-Identifier: Apache-2.0
-- Reclaim.

-- @query    reclaim_destinations
-- @title    Where the pages that reclaim sent to writeback went
-- @order    51
-- @summary  nr_vmscan_write split into what reached a device and what did not.
-- @read     nr_vmscan_write counts attempts. Anonymous pages that hold only
--   zeros (from 6.12 on) and those that zswap takes are written nowhere; the
--   counters of /proc/vmstat tell how many, for the whole run and all
--   reclaimers together. The swap device may be zram, which is memory, too.
--   File pages are those of the events; the file system may still decline
--   them. rest is what no counter explains: swap slots that were given back
--   before the write, pages dirtied again, errors; zswap where the kernel has
--   no counter of it (before 5.19). No rows: reclaim wrote nothing, or the
--   files are missing.
-- @grain    destination; order of the list below
-- @optional vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback
-- @column   destination TEXT swap device, file, zswap, zero-filled or rest
-- @column   pages_count INTEGER pages; NULL = not known
-- @column   share_ratio REAL of all pages that nr_vmscan_write gained; NULL
--   where the counters explain more than that
-- @column   is_device INTEGER 1: reached a device; 0: stayed in memory, or was
--   not written; NULL = not known
-- @column   counter TEXT what the number is made of
-- @metric   pages_count lower: pages that reclaim sent to writeback, by
--   destination; only those for the swap device and for files cost a disk write
-- @metric   share_ratio neutral: share of the pages that reclaim sent to
--   writeback
-- @source   mm/page_io.c swap_writepage(); mm/zswap.c; mm/vmscan.c pageout()
WITH
  line AS (
    SELECT
      1 AS place, 'swap device' AS destination, d.device_count AS pages_count,
      1 AS is_device, 'pswpout - zswpwb' AS counter
    FROM reclaim_run AS d
    UNION ALL
    SELECT 2, 'file', d.file_count, 1, 'reclaim_flags of the events'
    FROM reclaim_run AS d
    UNION ALL
    SELECT 3, 'zswap', d.zswap_count, 0, 'zswpout'
    FROM reclaim_run AS d
    UNION ALL
    SELECT 4, 'zero-filled', d.zero_count, 0, 'swpout_zero'
    FROM reclaim_run AS d
    UNION ALL
    SELECT
      5, 'rest', d.rest_count, CASE WHEN d.file_count IS NOT NULL THEN 0 END,
      'nr_vmscan_write - all above'
    FROM reclaim_run AS d
  )
SELECT
  l.destination, l.pages_count,
  CASE WHEN d.rest_count IS NOT NULL THEN 1.0 * l.pages_count / d.all_count END
    AS share_ratio,
  l.is_device, l.counter
FROM line AS l
CROSS JOIN reclaim_run AS d
WHERE d.all_count > 0
ORDER BY l.place;
