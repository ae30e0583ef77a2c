-- SPDX-License-Identifier: Apache-2.0
-- What reclaim did, and who reclaimed, event by event.

-- @view     reclaim_work
-- @summary  What reclaim did, and who reclaimed: folios given away to be
--   written, and scans of an inactive list. Spans of direct and memory cgroup
--   reclaim nest in their task; kswapd is known by its name or its wakes.
-- @grain    event; order seq
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin,
--   vmscan:mm_vmscan_lru_isolate,
--   vmscan:mm_vmscan_reclaim_writeback
-- @column   seq INTEGER order of all records
-- @column   tid INTEGER thread that reclaims
-- @column   comm TEXT its name
-- @column   work TEXT write, scan, isolate (MGLRU only) or dirty (met, but not
--   given away); writes are those of mm_vmscan_reclaim_writeback where it was
--   recorded, else of mm_vmscan_write_folio
-- @column   pfn INTEGER page frame of what was written
-- @column   reclaim_flags INTEGER of what was written
-- @column   scanned_count INTEGER pages of a scan, as /proc/vmstat counts them:
--   of mm_vmscan_lru_shrink_inactive; with MGLRU of mm_vmscan_lru_isolate
--   (reclaim_scan_basis)
-- @column   reclaimed_count INTEGER pages of a scan that were freed
-- @column   dirty_count INTEGER file pages of a scan that were dirty or under
--   writeback
-- @column   pages_count INTEGER pages written or met; NULL = not told
-- @column   reclaimer TEXT kswapd, memcg, direct or other (madvise, DAMON ...);
--   mm_vmscan_reclaim_writeback also tells node and proactive. Scans are
--   proactive in a memcg reclaim that it told one dirty folio of; those of node
--   reclaim are other
-- @column   invocation INTEGER seq of the begin of the direct or memcg reclaim,
--   or of kswapd's wake, that this belongs to; NULL = not seen
-- @source   mm/vmscan.c
-- @materialize
-- @cost     290
CREATE VIEW reclaim_work AS
WITH
  steps AS (
    SELECT
      w.tid, w.seq, w.ts, 'write' AS step, w.pfn, w.reclaim_flags,
      NULL AS scanned_count, NULL AS reclaimed_count, NULL AS dirty_count,
      NULL AS pages_count, NULL AS told
    FROM raw_mm_vmscan_write_folio AS w
    -- A patched kernel says more about the same writes.
    WHERE NOT EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback)
    UNION ALL
    SELECT
      s.tid, s.seq, s.ts, 'scan', NULL, s.reclaim_flags,
      CASE WHEN b.is_mglru = 0 THEN s.nr_scanned END, s.nr_reclaimed,
      s.nr_dirty, NULL, NULL
    FROM raw_mm_vmscan_lru_shrink_inactive AS s
    CROSS JOIN reclaim_scan_basis AS b
    UNION ALL
    SELECT
      i.tid, i.seq, i.ts, 'isolate', NULL, NULL, i.nr_taken, NULL, NULL, NULL,
      NULL
    FROM reclaim_scan_basis AS b
    CROSS JOIN raw_mm_vmscan_lru_isolate AS i
    WHERE b.is_mglru = 1
    UNION ALL
    SELECT
      p.tid, p.seq, p.ts, 'scan', NULL, NULL, p.nr_scanned, p.nr_reclaimed,
      NULL, NULL, NULL
    FROM raw_mm_vmscan_reclaim_pages AS p
    UNION ALL
    SELECT
      y.tid, y.seq, y.ts, CASE y.outcome WHEN 0 THEN 'write' ELSE 'dirty' END,
      y.pfn, y.reclaim_flags, NULL, NULL, NULL, y.nr_pages,
      CASE y.reclaimer
        WHEN 0 THEN 'kswapd'
        WHEN 1 THEN 'direct'
        WHEN 2 THEN 'memcg'
        WHEN 3 THEN 'node'
        WHEN 4 THEN 'proactive'
        ELSE 'other'
      END
    FROM raw_mm_vmscan_reclaim_writeback AS y
    UNION ALL
    SELECT
      d.tid, d.seq, d.ts, 'direct', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_direct_reclaim_begin AS d
    UNION ALL
    SELECT
      d.tid, d.seq, d.ts, 'direct end', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_direct_reclaim_end AS d
    UNION ALL
    SELECT
      m.tid, m.seq, m.ts, 'memcg', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_memcg_reclaim_begin AS m
    UNION ALL
    SELECT
      m.tid, m.seq, m.ts, 'memcg end', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_memcg_reclaim_end AS m
    UNION ALL
    SELECT
      m.tid, m.seq, m.ts, 'memcg', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_memcg_softlimit_reclaim_begin AS m
    UNION ALL
    SELECT
      m.tid, m.seq, m.ts, 'memcg end', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_memcg_softlimit_reclaim_end AS m
    UNION ALL
    SELECT
      k.tid, k.seq, k.ts, 'kswapd', NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM raw_mm_vmscan_kswapd_wake AS k
  ),
  inside AS (
    SELECT
      s.tid, s.seq, s.ts, s.step, s.pfn, s.reclaim_flags, s.scanned_count,
      s.reclaimed_count, s.dirty_count, s.pages_count, s.told,
      max(CASE WHEN s.step = 'direct' THEN s.seq END) OVER task AS direct_seq,
      max(CASE WHEN s.step = 'direct end' THEN s.seq END) OVER task
        AS direct_end_seq,
      max(CASE WHEN s.step = 'memcg' THEN s.seq END) OVER task AS memcg_seq,
      max(CASE WHEN s.step = 'memcg end' THEN s.seq END) OVER task
        AS memcg_end_seq,
      max(CASE WHEN s.step = 'kswapd' THEN s.seq END) OVER task AS kswapd_seq
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING)
  ),
  -- memory.reclaim begins and ends with the events of memcg reclaim.
  proactive AS (
    SELECT DISTINCT i.memcg_seq
    FROM inside AS i
    WHERE i.told = 'proactive'
  ),
  judged AS (
    SELECT
      i.seq, i.ts, i.tid,
      coalesce(t.comm, 'tid ' || i.tid) AS comm,
      i.step, i.pfn, i.reclaim_flags, i.scanned_count, i.reclaimed_count,
      i.dirty_count, i.pages_count,
      CASE
        WHEN i.told IS NOT NULL THEN i.told
        WHEN t.comm GLOB 'kswapd[0-9]*' OR k.tid IS NOT NULL THEN 'kswapd'
        WHEN i.memcg_seq > coalesce(i.memcg_end_seq, 0)
          THEN CASE WHEN a.memcg_seq IS NULL THEN 'memcg' ELSE 'proactive' END
        WHEN i.direct_seq > coalesce(i.direct_end_seq, 0) THEN 'direct'
        ELSE 'other'
      END AS reclaimer,
      i.direct_seq, i.memcg_seq, i.kswapd_seq
    FROM inside AS i
    LEFT JOIN wb_task AS t ON task_of!(t, i)
    LEFT JOIN proactive AS a ON a.memcg_seq = i.memcg_seq
    LEFT JOIN (SELECT DISTINCT w.tid FROM raw_mm_vmscan_kswapd_wake AS w) AS k
      ON k.tid = i.tid
    WHERE i.step IN ('write', 'scan', 'isolate', 'dirty')
  )
SELECT
  j.seq, j.ts, j.tid, j.comm,
  j.step AS work,
  j.pfn, j.reclaim_flags, j.scanned_count, j.reclaimed_count, j.dirty_count,
  j.pages_count, j.reclaimer,
  CASE j.reclaimer
    WHEN 'kswapd' THEN j.kswapd_seq
    WHEN 'memcg' THEN j.memcg_seq
    WHEN 'proactive' THEN j.memcg_seq
    WHEN 'direct' THEN j.direct_seq
  END AS invocation
FROM judged AS j;

-- @view     reclaim_scan_basis
-- @shared
-- @summary  Which event says how many pages were scanned, as /proc/vmstat
--   counts them. The classic LRU counts those that
--   mm_vmscan_lru_shrink_inactive names. The multi-generational one (MGLRU)
--   counts those that it isolates; its mm_vmscan_lru_shrink_inactive counts all
--   that it looked at, once more when it tries a batch again.
-- @grain    one row
-- @optional vmscan:mm_vmscan_lru_isolate
-- @column   is_mglru INTEGER 1: MGLRU, told by its batches: the classic LRU
--   never asks for more than SWAP_CLUSTER_MAX pages, which is 32
-- @column   basis TEXT isolate (mm_vmscan_lru_isolate) or shrink
--   (mm_vmscan_lru_shrink_inactive)
-- @source   mm/vmscan.c scan_folios(), evict_folios(), shrink_inactive_list()
-- @materialize
CREATE VIEW reclaim_scan_basis AS
WITH
  told AS (
    SELECT
      EXISTS (
        SELECT 1 FROM raw_mm_vmscan_lru_isolate AS i WHERE i.nr_requested > 32
      ) AS is_mglru
  )
SELECT
  t.is_mglru,
  CASE t.is_mglru WHEN 1 THEN 'isolate' ELSE 'shrink' END AS basis
FROM told AS t;

-- @view     reclaim_write
-- @summary  Folios that reclaim gave away to be written, by zone and by who
--   reclaimed: as a patched kernel tells it (mm_vmscan_reclaim_writeback), else
--   by the page frames of mm_vmscan_write_folio.
-- @grain    event; order seq
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin
-- @column   node INTEGER memory node; NULL when no single zone has the page
-- @column   zone TEXT zone; ambiguous: several zones span the page; unknown:
--   none
-- @column   kind TEXT anon (tmpfs and shmem among them), file or unknown
-- @column   reclaimer TEXT kswapd, memcg, direct or other (madvise, DAMON ...);
--   a patched kernel tells node and proactive too
-- @column   invocation INTEGER of reclaim_work
-- @column   pages_count INTEGER pages of the folio; NULL = not told
-- @column   memcg_id INTEGER memory cgroup that was reclaimed, 0 = the machine;
--   NULL = not told
-- @column   cgroup_path TEXT its path; NULL = not known
-- @column   basis TEXT reclaim_writeback or pfn: what the zone and the
--   reclaimer are from
-- @source   include/trace/events/vmscan.h: reclaim_flags 0x1 anon, 0x2 file
-- @materialize
CREATE VIEW reclaim_write AS
WITH
  placed AS (
    SELECT
      w.seq, w.ts, w.tid, w.comm, w.pfn, w.reclaim_flags, w.reclaimer,
      w.invocation,
      (
        SELECT count(*)
        FROM raw_zone AS z
        WHERE w.pfn >= z.start_pfn AND w.pfn < z.start_pfn + z.spanned_count
      ) AS zones_count
    FROM reclaim_work AS w
    WHERE w.work = 'write'
      AND NOT EXISTS (SELECT 1 FROM reclaim_writeback)
  )
SELECT
  p.seq, p.ts, p.tid, p.comm,
  CASE WHEN p.zones_count = 1 THEN z.node END AS node,
  CASE
    WHEN p.zones_count = 1 THEN z.zone
    WHEN p.zones_count > 1 THEN 'ambiguous'
    ELSE 'unknown'
  END AS zone,
  CASE
    WHEN p.reclaim_flags & 3 = 1 THEN 'anon'
    WHEN p.reclaim_flags & 3 = 2 THEN 'file'
    ELSE 'unknown'
  END AS kind,
  p.reclaimer, p.invocation,
  NULL AS pages_count,
  NULL AS memcg_id,
  NULL AS cgroup_path,
  'pfn' AS basis
FROM placed AS p
LEFT JOIN raw_zone AS z
  ON p.zones_count = 1
  AND p.pfn >= z.start_pfn
  AND p.pfn < z.start_pfn + z.spanned_count
UNION ALL
SELECT
  y.seq, y.ts, y.tid, y.comm, y.node, y.zone, y.kind, y.reclaimer, y.invocation,
  y.pages_count, y.memcg_id, y.cgroup_path,
  'reclaim_writeback'
FROM reclaim_writeback AS y
WHERE y.outcome = 'submitted';

-- @view     reclaim_writeback
-- @summary  What reclaim did with each dirty folio, as a patched kernel tells
--   it (mm_vmscan_reclaim_writeback), with the counters of its zone, its node
--   and the machine at that moment.
-- @grain    event; order seq
-- @key      seq
-- @events   vmscan:mm_vmscan_reclaim_writeback
-- @column   seq INTEGER order of all records
-- @column   tid INTEGER thread that reclaims
-- @column   reclaimer TEXT kswapd, direct, memcg (a cgroup at its limit), node
--   (vm.zone_reclaim_mode), proactive (memory.reclaim) or other
-- @column   invocation INTEGER of reclaim_work
-- @column   memcg_id INTEGER memory cgroup that was reclaimed; 0 = the machine
-- @column   cgroup_path TEXT its path, where the run's cgroups file has a
--   cgroup with this number; NULL = not known
-- @column   node INTEGER memory node
-- @column   zone TEXT zone: the kernel's name for it, else that of zoneinfo,
--   else its number
-- @column   kind TEXT anon (tmpfs and shmem among them), file or unknown
-- @column   outcome TEXT submitted (nr_vmscan_write), declined (a file's:
--   marked for immediate reclaim), refused (no swap, locked) or kept
-- @column   pages_count INTEGER pages of the folio
-- @column   device TEXT major:minor of the file's file system; NULL = no file
-- @column   ino INTEGER inode number of the file; NULL = no file
-- @column   priority_count INTEGER pressure: 12 = little, 0 = all must go
-- @column   zone_inactive_bytes INTEGER inactive pages of the zone
-- @column   zone_inactive_file_bytes INTEGER of them those of files
-- @column   zone_active_bytes INTEGER active pages of the zone
-- @column   zone_pending_bytes INTEGER dirty and writeback pages of the zone
-- @column   node_inactive_file_bytes INTEGER inactive file pages of the node
-- @column   node_active_file_bytes INTEGER active file pages of the node
-- @column   node_isolated_bytes INTEGER pages of the node, anon and file, that
--   were taken off their lists, by reclaim or to be moved
-- @column   node_dirty_bytes INTEGER dirty pages of the node
-- @column   node_writeback_bytes INTEGER pages of the node under writeback
-- @column   inactive_file_bytes INTEGER inactive file pages of the machine
-- @column   active_file_bytes INTEGER active file pages of the machine
-- @column   isolated_bytes INTEGER isolated pages of the machine
-- @column   dirty_bytes INTEGER dirty pages of the machine
-- @column   writeback_bytes INTEGER pages of the machine under writeback
-- @source   kernel-tracepoints/; mm/vmscan.c shrink_folio_list()
-- @materialize
CREATE VIEW reclaim_writeback AS
WITH
  zone_name AS MATERIALIZED (
    SELECT e.value AS zid, min(e.label) AS zone
    FROM raw_enum_label AS e
    WHERE e.event = 'vmscan:mm_vmscan_reclaim_writeback' AND e.field = 'zid'
    GROUP BY e.value
  ),
  cgroup_name AS MATERIALIZED (
    SELECT c.cgroup_ino, min(c.path) AS path
    FROM raw_cgroup AS c
    GROUP BY c.cgroup_ino
  )
SELECT
  y.seq, y.ts, y.tid, w.comm, w.reclaimer, w.invocation, y.memcg_id,
  c.path AS cgroup_path,
  y.nid AS node,
  coalesce(
    n.zone,
    (
      SELECT min(z.zone)
      FROM raw_zone AS z
      WHERE z.node = y.nid
        AND y.pfn >= z.start_pfn
        AND y.pfn < z.start_pfn + z.spanned_count
    ),
    'zone ' || y.zid
  ) AS zone,
  CASE
    WHEN y.reclaim_flags & 3 = 1 THEN 'anon'
    WHEN y.reclaim_flags & 3 = 2 THEN 'file'
    ELSE 'unknown'
  END AS kind,
  CASE y.outcome
    WHEN 0 THEN 'submitted'
    WHEN 1 THEN 'declined'
    WHEN 2 THEN 'refused'
    WHEN 3 THEN 'kept'
  END AS outcome,
  y.nr_pages AS pages_count,
  CASE WHEN y.ino <> 0 THEN device!(y) END AS device,
  nullif(y.ino, 0) AS ino,
  y.priority AS priority_count,
  (y.z_inactive_file + y.z_inactive_anon) * u.page_bytes AS zone_inactive_bytes,
  y.z_inactive_file * u.page_bytes AS zone_inactive_file_bytes,
  (y.z_active_file + y.z_active_anon) * u.page_bytes AS zone_active_bytes,
  y.z_write_pending * u.page_bytes AS zone_pending_bytes,
  y.n_inactive_file * u.page_bytes AS node_inactive_file_bytes,
  y.n_active_file * u.page_bytes AS node_active_file_bytes,
  (y.n_isolated_file + y.n_isolated_anon) * u.page_bytes AS node_isolated_bytes,
  y.n_dirty * u.page_bytes AS node_dirty_bytes,
  y.n_writeback * u.page_bytes AS node_writeback_bytes,
  y.g_inactive_file * u.page_bytes AS inactive_file_bytes,
  y.g_active_file * u.page_bytes AS active_file_bytes,
  (y.g_isolated_file + y.g_isolated_anon) * u.page_bytes AS isolated_bytes,
  y.g_dirty * u.page_bytes AS dirty_bytes,
  y.g_writeback * u.page_bytes AS writeback_bytes
FROM raw_mm_vmscan_reclaim_writeback AS y
CROSS JOIN wb_units AS u
JOIN reclaim_work AS w ON w.seq = y.seq
LEFT JOIN zone_name AS n ON n.zid = y.zid
LEFT JOIN cgroup_name AS c ON c.cgroup_ino = y.memcg_id;

-- @view     wb_reclaim_met
-- @shared
-- @summary  Whether each direct reclaim met dirty pages, by the scans in it;
--   asked only where the machine did: reclaim_work, which knows more, takes
--   long, and every verdict would wait for it.
-- @grain    direct reclaim whose scans were recorded; order seq
-- @key      seq
-- @optional vmscan:mm_vmscan_direct_reclaim_begin
-- @column   seq INTEGER of mm_vmscan_direct_reclaim_begin
-- @column   is_dirty INTEGER 1: so much of what it scanned was dirty or under
--   writeback (wb_rule)
-- @source   mm/vmscan.c shrink_inactive_list(), evict_folios()
-- @materialize
CREATE VIEW wb_reclaim_met AS
WITH
  asked AS (
    SELECT 1 AS one
    FROM wb_dirty_reclaim AS m
    WHERE m.is_meeting_dirty = 1
      AND EXISTS (
        SELECT 1
        FROM raw_mm_vmscan_lru_shrink_inactive AS s
        WHERE s.nr_dirty IS NOT NULL
      )
  ),
  steps AS (
    SELECT b.tid, b.seq, b.seq AS border_seq, 0 AS dirty, 0 AS scanned
    FROM asked AS a
    CROSS JOIN raw_mm_vmscan_direct_reclaim_begin AS b
    UNION ALL
    SELECT e.tid, e.seq, e.seq, 0, 0
    FROM asked AS a
    CROSS JOIN raw_mm_vmscan_direct_reclaim_end AS e
    UNION ALL
    SELECT s.tid, s.seq, NULL, s.nr_dirty, s.nr_scanned
    FROM asked AS a
    CROSS JOIN raw_mm_vmscan_lru_shrink_inactive AS s
  ),
  owned AS (
    SELECT
      s.dirty, s.scanned,
      max(s.border_seq) OVER (
        PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
      ) AS border_seq
    FROM steps AS s
  ),
  summed AS (
    SELECT
      o.border_seq,
      total(o.dirty) AS dirty,
      total(o.scanned) AS scanned
    FROM owned AS o
    WHERE o.border_seq IS NOT NULL
    GROUP BY o.border_seq
  )
SELECT
  b.seq,
  s.dirty > 0 AND s.dirty >= v.dirty_least_ratio * s.scanned AS is_dirty
FROM summed AS s
JOIN raw_mm_vmscan_direct_reclaim_begin AS b ON b.seq = s.border_seq
CROSS JOIN wb_rule AS v;
