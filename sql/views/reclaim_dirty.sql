-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_dirty
-- @summary  What the machine looked like when reclaim met or wrote dirty pages:
--   one row for each reclaim invocation, zone and kind of page, from the best
--   event there is. mm_vmscan_reclaim_writeback (a patched kernel) has the
--   counters of zone, node and machine. The printk of 2011 has those of zone
--   and machine. Events of a stock kernel name the zone by the page frame, and
--   the machine's counters come from the global_dirty_state before.
-- @grain    invocation, zone, kind; order ts, seq
-- @needs    reclaim_write, reclaim_work, raw_mm_vmscan_reclaim_writeback,
--   raw_reclaim, raw_zone, raw_global_dirty_state, wb_task, wb_units
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback|printk:reclaim
-- @optional writeback:global_dirty_state,
--   vmscan:mm_vmscan_lru_shrink_inactive
-- @column   seq INTEGER of the first event
-- @column   ts INTEGER ns, of the first event
-- @column   tid INTEGER thread that reclaims
-- @column   comm TEXT its name
-- @column   reclaimer TEXT kswapd, direct, memcg, other; NULL = not known
-- @column   node INTEGER memory node
-- @column   zone TEXT zone
-- @column   kind TEXT anon or file
-- @column   events_count INTEGER events in this invocation, zone and kind
-- @column   scanned_count INTEGER pages that this invocation scanned, of all
--   zones; NULL = mm_vmscan_lru_shrink_inactive was not recorded
-- @column   scan_dirty_count INTEGER file pages of them that were dirty or
--   under writeback; NULL up to 4.10
-- @column   zone_inactive_bytes INTEGER inactive pages of the zone
-- @column   zone_active_bytes INTEGER active pages of the zone
-- @column   zone_dirty_bytes INTEGER dirty pages of the zone (2011 only)
-- @column   zone_writeback_bytes INTEGER pages of the zone under writeback
--   (2011 only)
-- @column   zone_pending_bytes INTEGER both together (since 4.8 the kernel
--   counts only this by zone)
-- @column   node_dirty_bytes INTEGER dirty pages of the node
-- @column   node_writeback_bytes INTEGER pages of the node under writeback
-- @column   inactive_bytes INTEGER inactive pages of the machine (2011 only)
-- @column   dirty_bytes INTEGER dirty pages of the machine
-- @column   writeback_bytes INTEGER pages of the machine under writeback
-- @column   state_age_ns INTEGER how old the last two are; 0 = of this event
-- @column   basis TEXT reclaim_writeback, printk or global_dirty_state; NULL =
--   no counters are known
-- @source   mail 0/5 of per-zone dirty limiting, 2011-07-25; mm/vmscan.c
-- @materialize
CREATE VIEW reclaim_dirty AS
WITH
  stock AS (
    SELECT
      min(w.seq) AS seq,
      min(w.ts) AS ts,
      w.invocation,
      w.tid,
      w.comm,
      w.reclaimer,
      w.node,
      w.zone,
      w.kind,
      count(*) AS events_count
    FROM reclaim_write AS w
    -- A patched kernel says more about the same writes.
    WHERE NOT EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback)
    GROUP BY
      w.tid, w.comm, w.invocation, w.reclaimer, w.node, w.zone, w.kind
  ),
  scan AS (
    SELECT
      w.tid,
      w.invocation,
      sum(w.scanned_count) AS scanned_count,
      sum(w.dirty_count) AS scan_dirty_count
    FROM reclaim_work AS w
    WHERE w.work = 'scan' AND w.invocation IS NOT NULL
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
      m.seq,
      m.state_seq,
      max(m.state_seq) OVER (ORDER BY m.seq ROWS UNBOUNDED PRECEDING)
        AS last_state_seq
    FROM moment AS m
  ),
  stock_state AS (
    SELECT
      l.seq,
      g.ts AS state_ts,
      g.nr_dirty,
      g.nr_writeback
    FROM latest AS l
    JOIN raw_global_dirty_state AS g ON g.seq = l.last_state_seq
    WHERE l.state_seq IS NULL
  ),
  patched AS (
    SELECT
      w.invocation,
      w.comm,
      CASE y.reclaimer
        WHEN 0 THEN 'kswapd'
        WHEN 1 THEN 'direct'
        WHEN 2 THEN 'memcg'
        ELSE 'other'
      END AS reclaimer,
      (
        SELECT min(z.zone)
        FROM raw_zone AS z
        WHERE z.node = y.nid
          AND y.pfn >= z.start_pfn
          AND y.pfn < z.start_pfn + z.spanned_count
      ) AS zone,
      CASE
        WHEN y.reclaim_flags & 3 = 1 THEN 'anon'
        WHEN y.reclaim_flags & 3 = 2 THEN 'file'
        ELSE 'unknown'
      END AS kind,
      y.*
    FROM raw_mm_vmscan_reclaim_writeback AS y
    JOIN reclaim_work AS w ON w.seq = y.seq
  ),
  patched_first AS (
    SELECT
      min(p.seq) AS seq,
      p.invocation,
      p.reclaimer,
      p.zone,
      p.kind,
      p.comm,
      count(*) AS events_count
    FROM patched AS p
    GROUP BY
      p.tid, p.comm, p.invocation, p.reclaimer, p.nid, p.zid, p.zone, p.kind
  )
SELECT
  s.seq,
  s.ts,
  s.tid,
  s.comm,
  s.reclaimer,
  s.node,
  s.zone,
  s.kind,
  s.events_count,
  c.scanned_count,
  c.scan_dirty_count,
  NULL AS zone_inactive_bytes,
  NULL AS zone_active_bytes,
  NULL AS zone_dirty_bytes,
  NULL AS zone_writeback_bytes,
  NULL AS zone_pending_bytes,
  NULL AS node_dirty_bytes,
  NULL AS node_writeback_bytes,
  NULL AS inactive_bytes,
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
  f.seq,
  y.ts,
  y.tid,
  f.comm,
  f.reclaimer,
  y.nid,
  coalesce(f.zone, 'zone ' || y.zid),
  f.kind,
  f.events_count,
  c.scanned_count,
  c.scan_dirty_count,
  (y.z_inactive_file + y.z_inactive_anon) * u.page_bytes,
  (y.z_active_file + y.z_active_anon) * u.page_bytes,
  NULL,
  NULL,
  y.z_write_pending * u.page_bytes,
  y.n_dirty * u.page_bytes,
  y.n_writeback * u.page_bytes,
  NULL,
  y.g_dirty * u.page_bytes,
  y.g_writeback * u.page_bytes,
  0,
  'reclaim_writeback'
FROM patched_first AS f
JOIN raw_mm_vmscan_reclaim_writeback AS y ON y.seq = f.seq
CROSS JOIN wb_units AS u
LEFT JOIN scan AS c ON c.invocation = f.invocation AND c.tid = y.tid
UNION ALL
SELECT
  k.seq,
  k.ts,
  k.tid,
  t.comm,
  NULL,
  NULL,
  k.zone,
  'file',
  1,
  NULL,
  NULL,
  k.inactive_zone * u.page_bytes,
  k.active_zone * u.page_bytes,
  k.dirty_zone * u.page_bytes,
  k.writeback_zone * u.page_bytes,
  (k.dirty_zone + k.writeback_zone) * u.page_bytes,
  NULL,
  NULL,
  k.inactive_global * u.page_bytes,
  k.dirty_global * u.page_bytes,
  k.writeback_global * u.page_bytes,
  0,
  'printk'
FROM raw_reclaim AS k
CROSS JOIN wb_units AS u
LEFT JOIN wb_task AS t
  ON t.tid = k.tid AND k.seq >= t.from_seq AND k.seq < t.until_seq;
