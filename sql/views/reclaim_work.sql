-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_work
-- @summary  What reclaim did, and who reclaimed: folios given away to be
--   written, and scans of an inactive list. Spans of direct and memory cgroup
--   reclaim nest in their task; kswapd is known by its name or its wakes.
-- @grain    event; order seq
-- @needs    raw_mm_vmscan_write_folio, raw_mm_vmscan_lru_shrink_inactive,
--   raw_mm_vmscan_reclaim_pages, raw_mm_vmscan_reclaim_writeback,
--   raw_mm_vmscan_direct_reclaim_begin,
--   raw_mm_vmscan_direct_reclaim_end, raw_mm_vmscan_memcg_reclaim_begin,
--   raw_mm_vmscan_memcg_reclaim_end,
--   raw_mm_vmscan_memcg_softlimit_reclaim_begin,
--   raw_mm_vmscan_memcg_softlimit_reclaim_end, raw_mm_vmscan_kswapd_wake,
--   wb_task
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin,
--   vmscan:mm_vmscan_reclaim_writeback
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock
-- @column   tid INTEGER thread that reclaims
-- @column   comm TEXT its name
-- @column   work TEXT write, scan or dirty (met, but not given away); writes
--   are those of mm_vmscan_reclaim_writeback where it was recorded, else of
--   mm_vmscan_write_folio
-- @column   pfn INTEGER page frame of what was written
-- @column   reclaim_flags INTEGER of what was written
-- @column   scanned_count INTEGER pages of a scan
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
      s.tid, s.seq, s.ts, 'scan', NULL, s.reclaim_flags, s.nr_scanned,
      s.nr_reclaimed, s.nr_dirty, NULL, NULL
    FROM raw_mm_vmscan_lru_shrink_inactive AS s
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
      s.tid,
      s.seq,
      s.ts,
      s.step,
      s.pfn,
      s.reclaim_flags,
      s.scanned_count,
      s.reclaimed_count,
      s.dirty_count,
      s.pages_count,
      s.told,
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
      i.seq,
      i.ts,
      i.tid,
      coalesce(t.comm, 'tid ' || i.tid) AS comm,
      i.step,
      i.pfn,
      i.reclaim_flags,
      i.scanned_count,
      i.reclaimed_count,
      i.dirty_count,
      i.pages_count,
      CASE
        WHEN i.told IS NOT NULL THEN i.told
        WHEN t.comm GLOB 'kswapd[0-9]*' OR k.tid IS NOT NULL THEN 'kswapd'
        WHEN i.memcg_seq > coalesce(i.memcg_end_seq, 0)
          THEN CASE WHEN a.memcg_seq IS NULL THEN 'memcg' ELSE 'proactive' END
        WHEN i.direct_seq > coalesce(i.direct_end_seq, 0) THEN 'direct'
        ELSE 'other'
      END AS reclaimer,
      i.direct_seq,
      i.memcg_seq,
      i.kswapd_seq
    FROM inside AS i
    LEFT JOIN wb_task AS t
      ON t.tid = i.tid AND i.seq >= t.from_seq AND i.seq < t.until_seq
    LEFT JOIN proactive AS a ON a.memcg_seq = i.memcg_seq
    LEFT JOIN (SELECT DISTINCT w.tid FROM raw_mm_vmscan_kswapd_wake AS w) AS k
      ON k.tid = i.tid
    WHERE i.step IN ('write', 'scan', 'dirty')
  )
SELECT
  j.seq,
  j.ts,
  j.tid,
  j.comm,
  j.step AS work,
  j.pfn,
  j.reclaim_flags,
  j.scanned_count,
  j.reclaimed_count,
  j.dirty_count,
  j.pages_count,
  j.reclaimer,
  CASE j.reclaimer
    WHEN 'kswapd' THEN j.kswapd_seq
    WHEN 'memcg' THEN j.memcg_seq
    WHEN 'proactive' THEN j.memcg_seq
    WHEN 'direct' THEN j.direct_seq
  END AS invocation
FROM judged AS j;
