-- SPDX-License-Identifier: Apache-2.0
-- Reclaim.

-- @query    reclaim_efficiency
-- @title    How well reclaim worked
-- @order    52
-- @summary  Pages that each reclaimer scanned and freed, by events and vmstat.
-- @read     efficiency is the share of scanned pages that could be freed: low
--   when reclaim meets pages that are dirty, in use or referenced. direct_scan
--   is the share of scanning that applications had to do themselves. Events and
--   /proc/vmstat agree when vmstat.before and vmstat.after enclose the trace
--   and no events are lost. Up to 6.18 vmstat leaves memory cgroups out; from
--   6.19 on its direct has them, too, and is to be compared with direct + memcg
--   of the events. With MGLRU vmstat counts the pages that were isolated, so
--   scanned is of mm_vmscan_lru_isolate (scan_basis):
--   mm_vmscan_lru_shrink_inactive has more, all that were looked at, and once
--   more when a batch is tried again. Velocity is over the length of the run,
--   as mmtests has it, not over kswapd's time awake.
-- @filters  range
-- @grain    reclaimer; order kswapd, direct, memcg, other,
--   node, proactive
-- @optional vmscan:mm_vmscan_lru_shrink_inactive,
--   vmscan:mm_vmscan_lru_isolate,
--   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_reclaim_writeback,
--   vmscan:mm_vmscan_direct_reclaim_begin
-- @column   reclaimer TEXT kswapd, direct (an allocating task), memcg (a memory
--   cgroup at its limit) or other (madvise, DAMON ...); node and proactive
--   where mm_vmscan_reclaim_writeback tells that they wrote
-- @column   scanned_count INTEGER pages of inactive lists, from events
-- @column   reclaimed_count INTEGER of them freed, from events
-- @column   efficiency_ratio REAL reclaimed / scanned; NULL when nothing was
--   scanned
-- @column   velocity_pages_per_s REAL scanned over the run's length
-- @column   direct_scan_ratio REAL direct / (kswapd + direct), the same in each
--   row; NULL when nothing was scanned
-- @column   anon_writes_count INTEGER anon pages given away to be written; how
--   many a device had to write is in reclaim_destinations
-- @column   file_writes_count INTEGER file pages given away to be written
-- @column   vmstat_scanned_count INTEGER pages, from /proc/vmstat
-- @column   vmstat_reclaimed_count INTEGER pages, from /proc/vmstat
-- @column   vmstat_efficiency_ratio REAL reclaimed / scanned
-- @column   vmstat_velocity_pages_per_s REAL over the trace's length, or
--   between a counter's samples in a Perfetto trace
-- @column   vmstat_direct_scan_ratio REAL the same in each row
-- @column   scan_basis TEXT which event scanned_count is of, the one that
--   counts what vmstat counts: shrink (mm_vmscan_lru_shrink_inactive) or, with
--   MGLRU, isolate (mm_vmscan_lru_isolate)
-- @metric   efficiency_ratio higher: share of the memory pages that reclaim
--   looked at which it could free; the rest was work for nothing
-- @metric   direct_scan_ratio lower: share of reclaim's work that programs had
--   to do themselves, as the kernel's own thread for it (kswapd) was not ahead
-- @metric   file_writes_count lower: pages of files that reclaim had to write
--   because the kernel's writing threads (flushers) had not
-- @source   mmtests, MonitorMmtestsvmstat.pm
WITH
  span AS (
    SELECT
      1.0 * (b.end_ts - b.start_ts) / u.second_ns AS asked_s,
      1.0 * (b.last_ts - b.first_ts) / u.second_ns AS trace_s,
      u.second_ns
    FROM wb_bounds AS b
    CROSS JOIN wb_units AS u
  )
SELECT
  t.reclaimer, t.scanned_count, t.reclaimed_count,
  1.0 * t.reclaimed_count / nullif(t.scanned_count, 0) AS efficiency_ratio,
  t.scanned_count / nullif(s.asked_s, 0) AS velocity_pages_per_s,
  1.0 * sum(CASE t.reclaimer WHEN 'direct' THEN t.scanned_count END) OVER ()
    / nullif(
      sum(
        CASE WHEN t.reclaimer IN ('kswapd', 'direct') THEN t.scanned_count END
      ) OVER (), 0
    ) AS direct_scan_ratio,
  t.anon_writes_count, t.file_writes_count,
  v.scanned_count AS vmstat_scanned_count,
  v.reclaimed_count AS vmstat_reclaimed_count,
  1.0 * v.reclaimed_count / nullif(v.scanned_count, 0)
    AS vmstat_efficiency_ratio,
  coalesce(
    v.scanned_per_ns * s.second_ns, v.scanned_count / nullif(s.trace_s, 0)
  ) AS vmstat_velocity_pages_per_s,
  1.0 * sum(CASE v.reclaimer WHEN 'direct' THEN v.scanned_count END) OVER ()
    / nullif(
      sum(
        CASE WHEN v.reclaimer IN ('kswapd', 'direct') THEN v.scanned_count END
      ) OVER (), 0
    ) AS vmstat_direct_scan_ratio,
  CASE WHEN t.scanned_count IS NOT NULL THEN k.scan_basis END AS scan_basis
FROM _reclaim_total AS t
CROSS JOIN span AS s
CROSS JOIN reclaim_run AS k
LEFT JOIN _reclaim_vmstat AS v ON v.reclaimer = t.reclaimer
WHERE t.scanned_count IS NOT NULL
  OR t.anon_writes_count IS NOT NULL
  OR v.scanned_count IS NOT NULL
ORDER BY
  CASE t.reclaimer
    WHEN 'kswapd' THEN 1
    WHEN 'direct' THEN 2
    WHEN 'memcg' THEN 3
    WHEN 'other' THEN 4
    ELSE 5
  END,
  t.reclaimer;

-- @view     _reclaim_total
-- @summary  What each kind of reclaimer scanned, freed and wrote, from events.
-- @grain    reclaimer; order reclaimer
-- @column   reclaimer TEXT kswapd, direct, memcg or other; node and proactive
--   where mm_vmscan_reclaim_writeback told that they wrote
-- @column   scanned_count INTEGER pages; NULL = the event was not recorded, or
--   node reclaim, whose scans are those of other
-- @column   reclaimed_count INTEGER pages; NULL as scanned_count
-- @column   anon_writes_count INTEGER pages, scaled as in reclaim_writes; NULL
--   = the event was not recorded
-- @column   file_writes_count INTEGER pages, scaled as in reclaim_writes
-- @source   mm/vmscan.c shrink_inactive_list()
-- @materialize
-- @cost     36
CREATE VIEW _reclaim_total AS
WITH
  recorded AS (
    SELECT
      recorded!('vmscan:mm_vmscan_lru_shrink_inactive') AS has_scans,
      EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        )
      ) AS has_writes
  ),
  summed AS (
    SELECT
      w.reclaimer,
      sum(w.scanned_count) AS scanned,
      sum(w.reclaimed_count) AS reclaimed,
      sum(
        CASE
          WHEN w.work = 'write' AND w.reclaim_flags & 3 = 1
            THEN coalesce(w.pages_count, 1)
          ELSE 0
        END
      ) AS anon_writes,
      sum(
        CASE
          WHEN w.work = 'write' AND w.reclaim_flags & 3 = 2
            THEN coalesce(w.pages_count, 1)
          ELSE 0
        END
      ) AS file_writes
    FROM reclaim_work AS w
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(w.ts, b)
    GROUP BY w.reclaimer
  ),
  kinds AS (
    SELECT 'kswapd' AS reclaimer
    UNION
    SELECT 'direct'
    UNION
    SELECT 'memcg'
    UNION
    SELECT 'other'
    UNION
    SELECT s.reclaimer
    FROM summed AS s
    WHERE s.anon_writes > 0 OR s.file_writes > 0
  )
SELECT
  k.reclaimer,
  CASE WHEN r.has_scans AND k.reclaimer <> 'node'
    THEN coalesce(s.scanned, 0)
  END AS scanned_count,
  CASE WHEN r.has_scans AND k.reclaimer <> 'node'
    THEN coalesce(s.reclaimed, 0)
  END AS reclaimed_count,
  CASE
    WHEN r.has_writes
      THEN coalesce(s.anon_writes, 0) * c.pages_per_events_num
        / c.pages_per_events_den
  END AS anon_writes_count,
  CASE
    WHEN r.has_writes
      THEN coalesce(s.file_writes, 0) * c.pages_per_events_num
        / c.pages_per_events_den
  END AS file_writes_count
FROM kinds AS k
CROSS JOIN recorded AS r
CROSS JOIN reclaim_run AS c
LEFT JOIN summed AS s ON s.reclaimer = k.reclaimer;

-- @view     _reclaim_vmstat
-- @summary  What reclaim scanned and freed, from /proc/vmstat before and after.
--   Up to 4.7 the counters are one for each zone and are added up; up to 3.3
--   kswapd_steal counts kswapd and pgsteal_<zone> all reclaimers. Up to 6.18
--   the counters leave memory cgroups out, from 6.19 on direct has them, too.
-- @grain    reclaimer; order reclaimer
-- @column   reclaimer TEXT kswapd, direct or other (khugepaged, proactive)
-- @column   scanned_count INTEGER pages; NULL = no such counter
-- @column   reclaimed_count INTEGER pages; NULL = no such counter
-- @column   scanned_per_ns REAL pages, over the time between the samples of
--   each counter; NULL = the counters are those of files
-- @source   mm/vmscan.c shrink_inactive_list(); include/linux/vm_event_item.h
CREATE VIEW _reclaim_vmstat AS
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
      CASE WHEN v.name GLOB 'pgscan*' THEN 1.0 * v.gained_count / v.dur_ns END
        AS scanned_per_ns,
      CASE WHEN v.name NOT GLOB 'pgscan*' THEN v.gained_count END AS reclaimed
    FROM wb_vmstat AS v
  ),
  counted AS (
    SELECT c.reclaimer, c.scanned, c.reclaimed, c.scanned_per_ns
    FROM counter AS c
    WHERE c.reclaimer IS NOT NULL
    UNION ALL
    -- pgsteal_<zone> of those kernels has kswapd's pages too.
    SELECT 'direct', NULL, -v.gained_count, NULL
    FROM wb_vmstat AS v
    WHERE v.name = 'kswapd_steal'
  )
SELECT
  c.reclaimer,
  sum(c.scanned) AS scanned_count,
  sum(c.reclaimed) AS reclaimed_count,
  sum(c.scanned_per_ns) AS scanned_per_ns
FROM counted AS c
GROUP BY c.reclaimer;
