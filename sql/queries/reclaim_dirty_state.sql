-- SPDX-License-Identifier: Apache-2.0
-- @query    reclaim_dirty_state
-- @title    Dirty pages when reclaim wrote
-- @summary  How much of the zone was dirty each time that reclaim wrote pages.
-- @read     One row for each reclaim that wrote, as the printk of 2011 had, and
--   for each zone and kind of page. A zone whose dirty and writeback pages come
--   near to its inactive pages has nothing that reclaim can free at once, even
--   where pending_ratio, that of all zones together, is low. Reclaim whose
--   begin no event tells (node, MADV_PAGEOUT, DAMON) is one row of its task.
--   Kernels of today count dirty and writeback pages by node, and by zone only
--   their sum (zone_pending); a stock kernel's events tell neither, so that
--   only the machine's numbers are known: basis says where they are from. A
--   patched kernel's mm_vmscan_reclaim_writeback has them all.
-- @filters  range, tid, task
-- @grain    reclaim invocation, zone, kind; order ts, zone, kind
-- @needs    reclaim_dirty, wb_bounds, wb_params
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback|printk:reclaim
-- @optional writeback:global_dirty_state,
--   vmscan:mm_vmscan_lru_shrink_inactive
-- @column   ts INTEGER trace clock, first write of this invocation
-- @column   tid INTEGER thread that reclaims
-- @column   comm TEXT its name
-- @column   reclaimer TEXT kswapd, direct, memcg, node, proactive, other; NULL
--   = not known
-- @column   node INTEGER memory node
-- @column   zone TEXT zone
-- @column   kind TEXT anon or file
-- @column   events_count INTEGER folios written, or met dirty
-- @column   submitted_pages_count INTEGER pages given away to be written; NULL
--   = not told
-- @column   declined_pages_count INTEGER pages of files marked for immediate
--   reclaim
-- @column   scanned_count INTEGER pages that this reclaim scanned, of all zones
-- @column   scan_dirty_count INTEGER file pages of them that were dirty or
--   under writeback
-- @column   zone_inactive_bytes INTEGER inactive pages of the zone
-- @column   zone_active_bytes INTEGER active pages of the zone
-- @column   zone_dirty_bytes INTEGER dirty pages of the zone (2011 only)
-- @column   zone_writeback_bytes INTEGER the zone's pages under writeback (2011
--   only)
-- @column   zone_pending_bytes INTEGER dirty and writeback pages of the zone
-- @column   zone_pending_ratio REAL zone_pending / zone_inactive
-- @column   node_dirty_bytes INTEGER dirty pages of the node
-- @column   node_writeback_bytes INTEGER the node's pages under writeback
-- @column   inactive_bytes INTEGER inactive pages of the machine (2011 only)
-- @column   dirty_bytes INTEGER dirty pages of the machine
-- @column   writeback_bytes INTEGER the machine's pages under writeback
-- @column   pending_ratio REAL (dirty + writeback) / inactive of the machine
-- @column   state_age_ns INTEGER how old the machine's numbers are
-- @column   basis TEXT where the numbers are from
-- @metric   zone_pending_ratio lower: share of the memory that reclaim tries to
--   free first which it cannot free before it is written to a disk
-- @source   mail 0/5 of per-zone dirty limiting, 2011-07-25
SELECT
  d.ts,
  d.tid,
  d.comm,
  d.reclaimer,
  d.node,
  d.zone,
  d.kind,
  d.events_count,
  d.submitted_pages_count,
  d.declined_pages_count,
  d.scanned_count,
  d.scan_dirty_count,
  d.zone_inactive_bytes,
  d.zone_active_bytes,
  d.zone_dirty_bytes,
  d.zone_writeback_bytes,
  d.zone_pending_bytes,
  1.0 * d.zone_pending_bytes / nullif(d.zone_inactive_bytes, 0)
    AS zone_pending_ratio,
  d.node_dirty_bytes,
  d.node_writeback_bytes,
  d.inactive_bytes,
  d.dirty_bytes,
  d.writeback_bytes,
  1.0 * (d.dirty_bytes + d.writeback_bytes) / nullif(d.inactive_bytes, 0)
    AS pending_ratio,
  d.state_age_ns,
  d.basis
FROM reclaim_dirty AS d
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE d.ts >= b.start_ts
  AND d.ts < b.end_ts
  AND (p.tid IS NULL OR d.tid = p.tid)
  AND (p.comm_glob IS NULL OR d.comm GLOB p.comm_glob)
ORDER BY d.ts, d.seq, d.zone, d.kind;
