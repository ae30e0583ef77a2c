-- SPDX-License-Identifier: Apache-2.0
-- What reclaim did, and who reclaimed, event by event and in all, and the
-- counters of /proc/vmstat before and after the run.

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
--   (scan_basis of reclaim_run)
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
    CROSS JOIN reclaim_run AS b
    UNION ALL
    SELECT
      i.tid, i.seq, i.ts, 'isolate', NULL, NULL, i.nr_taken, NULL, NULL, NULL,
      NULL
    FROM reclaim_run AS b
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
      b.tid, b.seq, b.ts, b.step, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM (
      SELECT d.tid, d.seq, d.ts, 'direct' AS step
      FROM raw_mm_vmscan_direct_reclaim_begin AS d
      UNION ALL
      SELECT d.tid, d.seq, d.ts, 'direct end'
      FROM raw_mm_vmscan_direct_reclaim_end AS d
      UNION ALL
      SELECT m.tid, m.seq, m.ts, 'memcg'
      FROM raw_mm_vmscan_memcg_reclaim_begin AS m
      UNION ALL
      SELECT m.tid, m.seq, m.ts, 'memcg end'
      FROM raw_mm_vmscan_memcg_reclaim_end AS m
      UNION ALL
      SELECT m.tid, m.seq, m.ts, 'memcg'
      FROM raw_mm_vmscan_memcg_softlimit_reclaim_begin AS m
      UNION ALL
      SELECT m.tid, m.seq, m.ts, 'memcg end'
      FROM raw_mm_vmscan_memcg_softlimit_reclaim_end AS m
      UNION ALL
      SELECT k.tid, k.seq, k.ts, 'kswapd'
      FROM raw_mm_vmscan_kswapd_wake AS k
    ) AS b
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

-- @view     reclaim_writeback
-- @summary  What reclaim did with each dirty folio, as a patched kernel tells
--   it (mm_vmscan_reclaim_writeback), with the counters of its zone, its node
--   and the machine at that moment. Else the folios that it gave away to be
--   written, whose zones are told by the page frames of mm_vmscan_write_folio.
-- @grain    event; order seq
-- @key      seq
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin
-- @column   seq INTEGER order of all records
-- @column   tid INTEGER thread that reclaims
-- @column   reclaimer TEXT kswapd, direct, memcg (a cgroup at its limit), node
--   (vm.zone_reclaim_mode), proactive (memory.reclaim) or other
-- @column   invocation INTEGER of reclaim_work
-- @column   memcg_id INTEGER memory cgroup that was reclaimed; 0 = the machine;
--   NULL = not told, as are all numbers where basis is pfn
-- @column   cgroup_path TEXT its path, where the run's cgroups file has a
--   cgroup with this number; NULL = not known
-- @column   node INTEGER memory node; NULL when no single zone has the page
-- @column   zone TEXT zone: the kernel's name for it, else that of zoneinfo,
--   else its number; ambiguous: several zones span the page; unknown: none
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
-- @column   basis TEXT reclaim_writeback or pfn: what the zone and the
--   reclaimer are from
-- @source   kernel-tracepoints/; mm/vmscan.c shrink_folio_list();
--   include/trace/events/vmscan.h: reclaim_flags 0x1 anon, 0x2 file
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
  ),
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
      AND NOT EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback)
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
  y.g_writeback * u.page_bytes AS writeback_bytes,
  'reclaim_writeback' AS basis
FROM raw_mm_vmscan_reclaim_writeback AS y
CROSS JOIN wb_units AS u
JOIN reclaim_work AS w ON w.seq = y.seq
LEFT JOIN zone_name AS n ON n.zid = y.zid
LEFT JOIN cgroup_name AS c ON c.cgroup_ino = y.memcg_id
UNION ALL
SELECT
  p.seq, p.ts, p.tid, p.comm, p.reclaimer, p.invocation, NULL, NULL,
  CASE WHEN p.zones_count = 1 THEN z.node END,
  CASE
    WHEN p.zones_count = 1 THEN z.zone
    WHEN p.zones_count > 1 THEN 'ambiguous'
    ELSE 'unknown'
  END,
  CASE
    WHEN p.reclaim_flags & 3 = 1 THEN 'anon'
    WHEN p.reclaim_flags & 3 = 2 THEN 'file'
    ELSE 'unknown'
  END,
  'submitted',
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL,
  'pfn'
FROM placed AS p
LEFT JOIN raw_zone AS z
  ON p.zones_count = 1
  AND p.pfn >= z.start_pfn
  AND p.pfn < z.start_pfn + z.spanned_count;

-- @view     reclaim_run
-- @summary  What is known of all reclaim of the run: which event counts its
--   scans, how many pages an event stands for, where the pages went that it
--   gave away to be written, and whether it met dirty pages. nr_vmscan_write
--   counts all pages that it gave away, other counters of /proc/vmstat those
--   that went to swap, and how.
-- @grain    one row
-- @optional vmscan:mm_vmscan_write_folio, vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_reclaim_writeback, vmscan:mm_vmscan_lru_isolate,
--   vmscan:mm_vmscan_lru_shrink_inactive
-- @column   is_mglru INTEGER 1: the multi-generational LRU (MGLRU), told by its
--   batches: the classic LRU never asks for more than SWAP_CLUSTER_MAX pages,
--   which is 32. It counts the pages that it isolates as scanned; its
--   mm_vmscan_lru_shrink_inactive counts all that it looked at, once more when
--   it tries a batch again
-- @column   scan_basis TEXT which event says how many pages were scanned, as
--   /proc/vmstat counts them: isolate (mm_vmscan_lru_isolate) or shrink
--   (mm_vmscan_lru_shrink_inactive)
-- @column   is_complete INTEGER 1: no event is lost, the trace is not damaged
--   and was read whole; else nothing is scaled
-- @column   basis TEXT reclaim_writeback or pfn: which event counts
-- @column   events_count INTEGER events in the whole trace
-- @column   pages_count INTEGER pages that they tell; NULL = they do not
-- @column   pages_per_events_num INTEGER pages = events * num / den
-- @column   pages_per_events_den INTEGER see above; 1 at least
-- @column   all_count INTEGER pages that nr_vmscan_write gained; NULL = not
--   known
-- @column   device_count INTEGER of them to the swap device: pswpout, without
--   what zswap wrote out later (zswpwb); NULL = no such counter
-- @column   zswap_count INTEGER compressed in memory (zswpout); NULL = no such
--   counter, and the others leave a rest
-- @column   zero_count INTEGER zero-filled: a bit is set, nothing is written
--   (swpout_zero); 0 before 6.12, which does not look; NULL as zswap_count
-- @column   file_count INTEGER given to file systems, by the events; 0 from
--   6.16 on, where reclaim writes no files; NULL = not known
-- @column   rest_count INTEGER what none of these explains; NULL = they explain
--   more than there is: others write to swap, too, or the files do not enclose
--   the trace
-- @column   anon_count INTEGER all but file_count; NULL = not known
-- @column   unwritten_count INTEGER pages that surely reached no device; NULL
--   as rest_count
-- @column   is_meeting_dirty INTEGER 1: the machine's reclaim met dirty pages
--   of files: by vmstat, or, without it, by the scans that were recorded
-- @column   immediate_count INTEGER dirty pages of files that reclaim put off
--   (nr_vmscan_immediate_reclaim); NULL = no such counter
-- @source   mm/page_io.c swap_writepage(); mm/zswap.c zswap_store(),
--   zswap_writeback_entry(); mm/vmscan.c pageout(), scan_folios(),
--   evict_folios(), shrink_inactive_list()
-- @materialize
CREATE VIEW reclaim_run AS
WITH
  gained AS (
    SELECT
      max(CASE v.name WHEN 'pswpout' THEN v.gained_count END) AS pswpout,
      max(CASE v.name WHEN 'zswpout' THEN v.gained_count END) AS zswpout,
      max(CASE v.name WHEN 'zswpwb' THEN v.gained_count END) AS zswpwb,
      max(CASE v.name WHEN 'swpout_zero' THEN v.gained_count END)
        AS swpout_zero,
      max(CASE v.name WHEN 'nr_vmscan_immediate_reclaim' THEN v.gained_count
        END) AS immediate
    FROM wb_vmstat AS v
  ),
  counted AS (
    SELECT
      s.is_complete, s.basis, s.events_count, s.pages_count,
      s.pages_per_events_num, s.pages_per_events_den,
      g.immediate AS immediate_count,
      s.vmstat_count AS all_count,
      max(g.pswpout - coalesce(g.zswpwb, 0), 0) AS device_count,
      g.zswpout AS zswap_count,
      CASE WHEN k.version < 6012 THEN coalesce(g.swpout_zero, 0)
        ELSE g.swpout_zero
      END AS zero_count,
      CASE
        WHEN s.file_pages_count <= s.vmstat_count THEN s.file_pages_count
        WHEN k.version >= 6016 THEN 0
      END AS file_count
    FROM _reclaim_scale AS s
    CROSS JOIN gained AS g
    CROSS JOIN wb_units AS k
  ),
  closed AS (
    SELECT
      c.*,
      c.all_count - c.device_count - coalesce(c.zswap_count, 0)
        - coalesce(c.zero_count, 0) - coalesce(c.file_count, 0) AS rest_count
    FROM counted AS c
  ),
  -- Neither number has anonymous pages: folio_check_dirty_writeback().
  scanned AS (
    SELECT
      max(
        s.nr_immediate,
        CASE WHEN s.nr_dirty >= v.dirty_least_ratio * s.nr_scanned
          THEN s.nr_dirty
          ELSE 0
        END
      ) AS pages
    FROM (
      SELECT
        total(s.nr_immediate) AS nr_immediate,
        total(s.nr_dirty) AS nr_dirty,
        total(s.nr_scanned) AS nr_scanned
      FROM raw_mm_vmscan_lru_shrink_inactive AS s
    ) AS s
    CROSS JOIN wb_rule AS v
  )
SELECT
  m.is_mglru,
  CASE m.is_mglru WHEN 1 THEN 'isolate' ELSE 'shrink' END AS scan_basis,
  c.is_complete, c.basis, c.events_count, c.pages_count, c.pages_per_events_num,
  c.pages_per_events_den, c.all_count, c.device_count,
  -- Where the others add up to all, those without a counter are none.
  CASE WHEN c.rest_count = 0 THEN coalesce(c.zswap_count, 0)
    ELSE c.zswap_count
  END AS zswap_count,
  CASE WHEN c.rest_count = 0 THEN coalesce(c.zero_count, 0)
    ELSE c.zero_count
  END AS zero_count,
  CASE WHEN c.rest_count = 0 THEN coalesce(c.file_count, 0)
    ELSE c.file_count
  END AS file_count,
  CASE WHEN c.rest_count >= 0 THEN c.rest_count END AS rest_count,
  CASE
    WHEN c.rest_count = 0 THEN c.all_count - coalesce(c.file_count, 0)
    ELSE c.all_count - c.file_count
  END AS anon_count,
  CASE
    WHEN c.rest_count >= 0
      THEN coalesce(c.zswap_count, 0) + coalesce(c.zero_count, 0)
        + CASE WHEN c.file_count IS NULL THEN 0 ELSE c.rest_count END
  END AS unwritten_count,
  coalesce(c.immediate_count, d.pages) >= v.few_pages_count AS is_meeting_dirty,
  c.immediate_count
FROM closed AS c
CROSS JOIN scanned AS d
CROSS JOIN wb_rule AS v
CROSS JOIN (
  SELECT
    EXISTS (
      SELECT 1 FROM raw_mm_vmscan_lru_isolate AS i WHERE i.nr_requested > 32
    ) AS is_mglru
) AS m;

-- @view     wb_vmstat
-- @summary  What the counters of /proc/vmstat gained during the run.
-- @grain    counter; order name
-- @column   name TEXT counter
-- @column   before_value INTEGER as in the file, most of them pages
-- @column   after_value INTEGER as in the file
-- @column   gained_count INTEGER after minus before, also of a counter of 32
--   bits that wrapped; NULL when one is missing, or it can only grow and did
--   not
-- @column   dur_ns INTEGER in this time: from its first sample in a Perfetto
--   trace to its last, which lie within the trace; NULL = from right before the
--   trace to right after it, as the files do
-- @source   mm/vmstat.c vmstat_start(): pgpgin and pgpgout are an unsigned long
--   of sectors, over 2
CREATE VIEW wb_vmstat AS
WITH
  told AS (
    SELECT
      v.name,
      v.name IN ('pgpgin', 'pgpgout') AS is_halved,
      v.name GLOB 'nr_*' AND v.name NOT IN ('nr_written', 'nr_vmscan_write')
        OR v.name = 'workingset_nodes' AS can_fall,
      max(CASE WHEN v.sample = 'before' THEN v.value END) AS before_value,
      max(CASE WHEN v.sample = 'after' THEN v.value END) AS after_value,
      max(CASE WHEN v.sample = 'after' THEN v.ts END)
        - max(CASE WHEN v.sample = 'before' THEN v.ts END) AS dur_ns
    FROM raw_vmstat AS v
    GROUP BY v.name
  ),
  gained AS (
    SELECT
      t.*,
      (
        (t.after_value - t.before_value + (u.long_half >> t.is_halved))
        & (u.long_mask >> t.is_halved)
      ) - (u.long_half >> t.is_halved) AS gained
    FROM told AS t
    CROSS JOIN wb_units AS u
  )
SELECT
  g.name, g.before_value, g.after_value,
  CASE WHEN g.gained >= 0 OR g.can_fall THEN g.gained END AS gained_count,
  -- Times that somebody wrote into files may be any.
  CASE WHEN g.dur_ns > 0 THEN g.dur_ns END AS dur_ns
FROM gained AS g;

-- @view     _reclaim_scale
-- @summary  Pages for each mm_vmscan_write_folio event: the event does not say
--   how large its folio is, the counter nr_vmscan_write counts pages. A patched
--   kernel's mm_vmscan_reclaim_writeback does say: nothing is scaled then.
-- @grain    one row
-- @column   is_complete INTEGER 1: no event is lost, the trace is not damaged
--   and was read whole; else nothing is scaled
-- @column   basis TEXT reclaim_writeback or pfn: which event counts
-- @column   events_count INTEGER events in the whole trace
-- @column   pages_count INTEGER pages that they tell; NULL = they do not
-- @column   vmstat_count INTEGER pages that nr_vmscan_write gained, or NULL
-- @column   pages_per_events_num INTEGER pages = events * num / den
-- @column   pages_per_events_den INTEGER see above; 1 at least
-- @column   file_pages_count INTEGER pages of files among them, in the whole
--   trace; NULL = not known: events are missing, or of no kind
-- @source   mm/vmscan.c pageout(): node_stat_add_folio(folio, NR_VMSCAN_WRITE)
CREATE VIEW _reclaim_scale AS
WITH
  totals AS (
    SELECT
      NOT EXISTS (SELECT 1 FROM raw_lost_events)
      AND NOT EXISTS (
        SELECT 1
        FROM raw_meta AS m
        WHERE m.key IN ('damaged', 'partial') AND m.value = 1
      ) AS is_complete,
      (
        SELECT count(*)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0
      ) AS told_count,
      (
        SELECT coalesce(sum(y.nr_pages), 0)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0
      ) AS told_pages_count,
      EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback) AS is_told,
      (
        SELECT coalesce(sum(y.nr_pages), 0)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0 AND y.reclaim_flags & 3 = 2
      ) AS told_file_count,
      (
        SELECT count(*)
        FROM raw_mm_vmscan_write_folio AS w
        WHERE w.reclaim_flags & 3 = 2
      ) AS file_count,
      EXISTS (
        SELECT 1
        FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        )
      ) AND NOT EXISTS (
        SELECT 1
        FROM raw_event_counts AS c
        WHERE c.event IN (
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        ) AND c.loaded_count < c.count
      ) AS has_kinds,
      (
        SELECT coalesce(sum(c.count), 0)
        FROM raw_event_counts AS c
        WHERE c.event IN (
          'vmscan:mm_vmscan_write_folio', 'vmscan:mm_vmscan_writepage'
        )
      ) AS events_count,
      (
        SELECT v.gained_count
        FROM wb_vmstat AS v
        WHERE v.name = 'nr_vmscan_write'
      ) AS vmstat_count
  ),
  scaled AS (
    SELECT
      t.*,
      CASE
        WHEN t.is_complete
          AND NOT t.is_told
          AND t.events_count > 0
          AND t.vmstat_count > t.events_count
          THEN t.vmstat_count
        ELSE 1
      END AS pages_per_events_num,
      CASE
        WHEN t.is_complete
          AND NOT t.is_told
          AND t.events_count > 0
          AND t.vmstat_count > t.events_count
          THEN t.events_count
        ELSE 1
      END AS pages_per_events_den
    FROM totals AS t
  )
SELECT
  t.is_complete,
  CASE WHEN t.is_told THEN 'reclaim_writeback' ELSE 'pfn' END AS basis,
  CASE WHEN t.is_told THEN t.told_count ELSE t.events_count END AS events_count,
  CASE WHEN t.is_told THEN t.told_pages_count END AS pages_count,
  t.vmstat_count, t.pages_per_events_num, t.pages_per_events_den,
  CASE
    WHEN NOT t.is_complete OR NOT t.has_kinds THEN NULL
    WHEN t.is_told THEN t.told_file_count
    ELSE t.file_count * t.pages_per_events_num / t.pages_per_events_den
  END AS file_pages_count
FROM scaled AS t;
