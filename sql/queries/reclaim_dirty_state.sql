-- SPDX-License-Identifier: Apache-2.0
-- Reclaim.

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
--   patched kernel's mm_vmscan_reclaim_writeback has those of zone, node and
--   machine, but of the machine's inactive pages only those of files:
--   pending_ratio is NULL there.
-- @filters  range, tid, task
-- @grain    reclaim invocation, zone, kind; order ts, zone, kind
-- @keys     ts, tid, zone, kind
-- @first    comm, reclaimer, node, events_count
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback|printk:reclaim
-- @optional writeback:global_dirty_state,
--   vmscan:mm_vmscan_lru_shrink_inactive
-- @column   ts INTEGER trace clock, first write of this invocation
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
-- @column   zone_inactive_file_bytes INTEGER of them those of files (patched
--   kernels only)
-- @column   zone_active_bytes INTEGER active pages of the zone
-- @column   zone_isolated_bytes INTEGER pages of the zone that were taken off
--   their lists, by reclaim or to be moved (2011 only)
-- @column   zone_dirty_bytes INTEGER dirty pages of the zone (2011 only)
-- @column   zone_writeback_bytes INTEGER the zone's pages under writeback (2011
--   only)
-- @column   zone_pending_bytes INTEGER dirty and writeback pages of the zone
-- @column   zone_pending_ratio REAL zone_pending / zone_inactive
-- @column   node_inactive_file_bytes INTEGER inactive file pages of the node
-- @column   node_isolated_bytes INTEGER the node's isolated pages
-- @column   node_dirty_bytes INTEGER dirty pages of the node
-- @column   node_writeback_bytes INTEGER the node's pages under writeback
-- @column   inactive_bytes INTEGER inactive pages of the machine (2011 only)
-- @column   inactive_file_bytes INTEGER inactive file pages of the machine
--   (patched kernels only)
-- @column   isolated_bytes INTEGER isolated pages of the machine
-- @column   dirty_bytes INTEGER dirty pages of the machine
-- @column   writeback_bytes INTEGER the machine's pages under writeback
-- @column   pending_ratio REAL (dirty + writeback) / inactive of the machine
-- @column   state_age_ns INTEGER how old the machine's numbers are
-- @column   basis TEXT where the numbers are from
-- @metric   zone_pending_ratio lower: share of the memory that reclaim tries to
--   free first which it cannot free before it is written to a disk
-- @source   mail 0/5 of per-zone dirty limiting, 2011-07-25
WITH
  -- A patched kernel has the counters of zone, node and machine. The printk of
  -- 2011 has those of zone and machine. Events of a stock kernel name the zone
  -- by the page frame, and the machine's counters come from the
  -- global_dirty_state before.
  stock AS (
    SELECT
      min(w.seq) AS seq,
      min(w.ts) AS ts,
      w.invocation, w.tid, w.comm, w.reclaimer, w.node, w.zone, w.kind,
      count(*) AS events_count
    FROM reclaim_writeback AS w
    WHERE w.basis = 'pfn'
    GROUP BY w.tid, w.comm, w.invocation, w.reclaimer, w.node, w.zone, w.kind
  ),
  scan AS (
    SELECT
      w.tid, w.invocation,
      sum(w.scanned_count) AS scanned_count,
      sum(w.dirty_count) AS scan_dirty_count
    FROM reclaim_work AS w
    WHERE w.work IN ('scan', 'isolate') AND w.invocation IS NOT NULL
    GROUP BY w.tid, w.invocation
  ),
  moment AS (
    SELECT s.seq, NULL AS state_seq FROM stock AS s
    UNION ALL
    SELECT g.seq, g.seq
    FROM raw_global_dirty_state AS g
    WHERE EXISTS (SELECT 1 FROM stock)
  ),
  latest AS (
    SELECT
      m.seq, m.state_seq,
      max(m.state_seq) OVER (ORDER BY m.seq ROWS UNBOUNDED PRECEDING)
        AS last_state_seq
    FROM moment AS m
  ),
  stock_state AS (
    SELECT
      l.seq,
      g.ts AS state_ts,
      g.nr_dirty, g.nr_writeback
    FROM latest AS l
    JOIN raw_global_dirty_state AS g ON g.seq = l.last_state_seq
    WHERE l.state_seq IS NULL
  ),
  patched_first AS (
    SELECT
      min(p.seq) AS seq,
      p.invocation, p.reclaimer, p.zone, p.kind, p.comm,
      count(*) AS events_count,
      sum(CASE p.outcome WHEN 'submitted' THEN p.pages_count ELSE 0 END)
        AS submitted_pages_count,
      sum(CASE p.outcome WHEN 'declined' THEN p.pages_count ELSE 0 END)
        AS declined_pages_count
    FROM reclaim_writeback AS p
    WHERE p.basis = 'reclaim_writeback'
    GROUP BY p.tid, p.comm, p.invocation, p.reclaimer, p.node, p.zone, p.kind
  ),
  state AS (
    SELECT
      s.seq, s.ts, s.tid, s.comm, s.reclaimer, s.node, s.zone, s.kind,
      s.events_count,
      NULL AS submitted_pages_count,
      NULL AS declined_pages_count,
      c.scanned_count, c.scan_dirty_count,
      NULL AS zone_inactive_bytes,
      NULL AS zone_inactive_file_bytes,
      NULL AS zone_active_bytes,
      NULL AS zone_isolated_bytes,
      NULL AS zone_dirty_bytes,
      NULL AS zone_writeback_bytes,
      NULL AS zone_pending_bytes,
      NULL AS node_inactive_file_bytes,
      NULL AS node_isolated_bytes,
      NULL AS node_dirty_bytes,
      NULL AS node_writeback_bytes,
      NULL AS inactive_bytes,
      NULL AS inactive_file_bytes,
      NULL AS isolated_bytes,
      t.nr_dirty * u.page_bytes AS dirty_bytes,
      t.nr_writeback * u.page_bytes AS writeback_bytes,
      s.ts - t.state_ts AS state_age_ns,
      CASE WHEN t.seq IS NOT NULL THEN 'global_dirty_state' END AS basis
    FROM stock AS s
    CROSS JOIN wb_units AS u
    LEFT JOIN stock_state AS t ON t.seq = s.seq
    LEFT JOIN scan AS c ON c.invocation = s.invocation AND c.tid = s.tid
    UNION ALL
    SELECT
      f.seq, y.ts, y.tid, f.comm, f.reclaimer, y.node, f.zone, f.kind,
      f.events_count, f.submitted_pages_count, f.declined_pages_count,
      c.scanned_count, c.scan_dirty_count, y.zone_inactive_bytes,
      y.zone_inactive_file_bytes, y.zone_active_bytes, NULL, NULL, NULL,
      y.zone_pending_bytes, y.node_inactive_file_bytes, y.node_isolated_bytes,
      y.node_dirty_bytes, y.node_writeback_bytes, NULL, y.inactive_file_bytes,
      y.isolated_bytes, y.dirty_bytes, y.writeback_bytes, 0,
      'reclaim_writeback'
    FROM patched_first AS f
    JOIN reclaim_writeback AS y ON y.seq = f.seq
    LEFT JOIN scan AS c ON c.invocation = f.invocation AND c.tid = y.tid
    UNION ALL
    SELECT
      k.seq, k.ts, k.tid, t.comm, NULL, NULL, k.zone,
      'file',
      1, NULL, NULL, NULL, NULL,
      k.inactive_zone * u.page_bytes,
      NULL,
      k.active_zone * u.page_bytes,
      k.isolated_zone * u.page_bytes,
      k.dirty_zone * u.page_bytes,
      k.writeback_zone * u.page_bytes,
      (k.dirty_zone + k.writeback_zone) * u.page_bytes,
      NULL, NULL, NULL, NULL,
      k.inactive_global * u.page_bytes,
      NULL,
      k.isolated_global * u.page_bytes,
      k.dirty_global * u.page_bytes,
      k.writeback_global * u.page_bytes,
      0,
      'printk'
    FROM raw_reclaim AS k
    CROSS JOIN wb_units AS u
    LEFT JOIN wb_task AS t ON task_of!(t, k)
  )
SELECT
  d.ts, d.tid, d.comm, d.reclaimer, d.node, d.zone, d.kind, d.events_count,
  d.submitted_pages_count, d.declined_pages_count, d.scanned_count,
  d.scan_dirty_count, d.zone_inactive_bytes, d.zone_inactive_file_bytes,
  d.zone_active_bytes, d.zone_isolated_bytes, d.zone_dirty_bytes,
  d.zone_writeback_bytes, d.zone_pending_bytes,
  1.0 * d.zone_pending_bytes / nullif(d.zone_inactive_bytes, 0)
    AS zone_pending_ratio,
  d.node_inactive_file_bytes, d.node_isolated_bytes, d.node_dirty_bytes,
  d.node_writeback_bytes, d.inactive_bytes, d.inactive_file_bytes,
  d.isolated_bytes, d.dirty_bytes, d.writeback_bytes,
  1.0 * (d.dirty_bytes + d.writeback_bytes) / nullif(d.inactive_bytes, 0)
    AS pending_ratio,
  d.state_age_ns, d.basis
FROM state AS d
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(d.ts, b)
  AND of_task!(d, p)
ORDER BY d.ts, d.seq, d.zone, d.kind;
