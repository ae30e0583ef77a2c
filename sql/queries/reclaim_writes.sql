-- SPDX-License-Identifier: Apache-2.0
-- Reclaim.

-- @query    reclaim_writes
-- @title    Pages that reclaim had to write
-- @order    50
-- @summary  nr_vmscan_write by zone, kind of page and who reclaimed.
-- @read     The best is no row: flushers and swap-out kept ahead. file rows
--   mean that reclaim met dirty page cache at the end of the LRU lists. Not all
--   of these pages reached a device: zero-filled ones and those that zswap took
--   were written nowhere; see swap_device_ratio and reclaim_destinations.
--   basis: reclaim_writeback is exact, a patched kernel's event tells it all;
--   pfn is from page frames, /proc/zoneinfo and the tasks' other events.
-- @filters  range
-- @grain    node, zone, kind, reclaimer; order node, zone, kind, reclaimer
-- @first    pages_count, events_count
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback
-- @optional vmscan:mm_vmscan_direct_reclaim_begin
-- @column   node INTEGER memory node
-- @column   zone TEXT zone of the page; ambiguous or unknown where no single
--   zone spans it
-- @column   kind TEXT anon (swap; tmpfs and shmem among them) or file
-- @column   reclaimer TEXT kswapd, memcg, direct or other; node and proactive
--   where basis is reclaim_writeback
-- @column   events_count INTEGER folios
-- @column   pages_count INTEGER pages; with basis pfn scaled to nr_vmscan_write
--   when that is larger than the number of events
-- @column   swap_device_ratio REAL share of the whole run's anon pages that
--   reached the swap device, the same in each anon row, for no event tells it
--   of one page; NULL = not known, or a row of files
-- @column   basis TEXT reclaim_writeback or pfn
-- @metric   pages_count lower: pages that reclaim itself sent to writeback
--   because memory ran short, whether or not a device had to write them
--   (reclaim_destinations); flushers write in an order that disks like, reclaim
--   does not
-- @metric   swap_device_ratio neutral: share of the anonymous pages given to
--   swap that a device had to write; the rest was zero-filled or compressed in
--   memory
WITH
  grouped AS (
    SELECT
      r.node, r.zone, r.kind, r.reclaimer, r.basis,
      count(*) AS events_count,
      sum(r.pages_count) AS told_pages_count
    FROM reclaim_writeback AS r
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(r.ts, b) AND r.outcome = 'submitted'
    GROUP BY r.node, r.zone, r.kind, r.reclaimer, r.basis
  ),
  summed AS (
    SELECT
      g.*,
      sum(g.events_count) OVER (
        ORDER BY g.node, g.zone, g.kind, g.reclaimer ROWS UNBOUNDED PRECEDING
      ) AS events_so_far
    FROM grouped AS g
  )
-- Rounding the running sum keeps the total exact.
SELECT
  s.node, s.zone, s.kind, s.reclaimer, s.events_count,
  coalesce(
    s.told_pages_count,
    s.events_so_far * d.pages_per_events_num / d.pages_per_events_den
      - (s.events_so_far - s.events_count) * d.pages_per_events_num
        / d.pages_per_events_den
  ) AS pages_count,
  CASE
    WHEN s.kind = 'anon' AND d.device_count <= d.anon_count
      THEN 1.0 * d.device_count / nullif(d.anon_count, 0)
  END AS swap_device_ratio,
  s.basis
FROM summed AS s
CROSS JOIN reclaim_run AS d
ORDER BY s.node IS NULL, s.node, s.zone, s.kind, s.reclaimer;
