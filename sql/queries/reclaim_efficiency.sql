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
  ),
  direct AS (
    SELECT
      (
        SELECT
          1.0 * sum(CASE t.reclaimer WHEN 'direct' THEN t.scanned_count END)
          / nullif(sum(t.scanned_count), 0)
        FROM reclaim_total AS t
        WHERE t.reclaimer IN ('kswapd', 'direct')
      ) AS scan_ratio,
      (
        SELECT
          1.0 * sum(CASE v.reclaimer WHEN 'direct' THEN v.scanned_count END)
          / nullif(sum(v.scanned_count), 0)
        FROM reclaim_vmstat AS v
        WHERE v.reclaimer IN ('kswapd', 'direct')
      ) AS vmstat_scan_ratio
  )
SELECT
  t.reclaimer, t.scanned_count, t.reclaimed_count,
  1.0 * t.reclaimed_count / nullif(t.scanned_count, 0) AS efficiency_ratio,
  t.scanned_count / nullif(s.asked_s, 0) AS velocity_pages_per_s,
  d.scan_ratio AS direct_scan_ratio,
  t.anon_writes_count, t.file_writes_count,
  v.scanned_count AS vmstat_scanned_count,
  v.reclaimed_count AS vmstat_reclaimed_count,
  1.0 * v.reclaimed_count / nullif(v.scanned_count, 0)
    AS vmstat_efficiency_ratio,
  coalesce(
    v.scanned_per_ns * s.second_ns, v.scanned_count / nullif(s.trace_s, 0)
  ) AS vmstat_velocity_pages_per_s,
  d.vmstat_scan_ratio AS vmstat_direct_scan_ratio,
  CASE WHEN t.scanned_count IS NOT NULL THEN k.basis END AS scan_basis
FROM reclaim_total AS t
CROSS JOIN span AS s
CROSS JOIN direct AS d
CROSS JOIN reclaim_scan_basis AS k
LEFT JOIN reclaim_vmstat AS v ON v.reclaimer = t.reclaimer
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
