-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_vmstat
-- @summary  What reclaim scanned and freed, from /proc/vmstat before and after.
--   Up to 4.7 the counters are one for each zone and are added up; up to 3.3
--   kswapd_steal counts kswapd and pgsteal_<zone> all reclaimers. The counters
--   leave out memory cgroup reclaim until it was put in (7.3 has it).
-- @grain    reclaimer; order reclaimer
-- @needs    wb_vmstat
-- @column   reclaimer TEXT kswapd, direct or other (khugepaged, proactive)
-- @column   scanned_count INTEGER pages; NULL = no such counter
-- @column   reclaimed_count INTEGER pages; NULL = no such counter
-- @source   mm/vmscan.c shrink_inactive_list(); include/linux/vm_event_item.h
CREATE VIEW reclaim_vmstat AS
WITH
  counter AS (
    SELECT
      CASE
        WHEN v.name IN (
          'pgscan_direct_throttle', 'pgscan_anon', 'pgscan_file',
          'pgsteal_anon', 'pgsteal_file'
        ) THEN NULL
        WHEN v.name GLOB 'pgscan_kswapd*' THEN 'kswapd'
        WHEN v.name GLOB 'pgsteal_kswapd*' THEN 'kswapd'
        WHEN v.name = 'kswapd_steal' THEN 'kswapd'
        WHEN v.name GLOB 'pgscan_direct*' THEN 'direct'
        WHEN v.name GLOB 'pgsteal_direct*' THEN 'direct'
        WHEN v.name IN (
          'pgsteal_dma', 'pgsteal_dma32', 'pgsteal_normal', 'pgsteal_high',
          'pgsteal_movable'
        ) THEN 'direct'
        WHEN v.name IN ('pgscan_khugepaged', 'pgscan_proactive') THEN 'other'
        WHEN v.name IN ('pgsteal_khugepaged', 'pgsteal_proactive') THEN 'other'
      END AS reclaimer,
      CASE WHEN v.name GLOB 'pgscan*' THEN v.gained_count END AS scanned,
      CASE WHEN v.name NOT GLOB 'pgscan*' THEN v.gained_count END AS reclaimed
    FROM wb_vmstat AS v
  ),
  counted AS (
    SELECT c.reclaimer, c.scanned, c.reclaimed
    FROM counter AS c
    WHERE c.reclaimer IS NOT NULL
    UNION ALL
    -- pgsteal_<zone> of those kernels has kswapd's pages too.
    SELECT 'direct', NULL, -v.gained_count
    FROM wb_vmstat AS v
    WHERE v.name = 'kswapd_steal'
  )
SELECT
  c.reclaimer,
  sum(c.scanned) AS scanned_count,
  sum(c.reclaimed) AS reclaimed_count
FROM counted AS c
GROUP BY c.reclaimer;
