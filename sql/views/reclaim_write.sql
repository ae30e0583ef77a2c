-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_write
-- @summary  Folios that reclaim gave away to be written, by zone and by who
--   reclaimed.
-- @grain    event; order seq
-- @needs    raw_mm_vmscan_write_folio, raw_mm_vmscan_direct_reclaim_begin,
--   raw_mm_vmscan_direct_reclaim_end, raw_mm_vmscan_memcg_reclaim_begin,
--   raw_mm_vmscan_memcg_reclaim_end,
--   raw_mm_vmscan_memcg_softlimit_reclaim_begin,
--   raw_mm_vmscan_memcg_softlimit_reclaim_end, raw_mm_vmscan_kswapd_wake,
--   raw_zone, wb_task
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock
-- @column   tid INTEGER thread that reclaims
-- @column   node INTEGER memory node; NULL when no single zone has the page
-- @column   zone TEXT zone; ambiguous: several zones span the page; unknown:
--   none
-- @column   kind TEXT anon (tmpfs and shmem among them), file or unknown
-- @column   reclaimer TEXT kswapd, memcg, direct or other (madvise, DAMON ...)
-- @source   include/trace/events/vmscan.h: reclaim_flags 0x1 anon, 0x2 file
-- @materialize
CREATE VIEW reclaim_write AS
WITH
  steps AS (
    SELECT w.tid, w.seq, w.ts, 'write' AS step, w.pfn, w.reclaim_flags
    FROM raw_mm_vmscan_write_folio AS w
    UNION ALL
    SELECT d.tid, d.seq, d.ts, 'direct', NULL, NULL
    FROM raw_mm_vmscan_direct_reclaim_begin AS d
    UNION ALL
    SELECT d.tid, d.seq, d.ts, 'direct end', NULL, NULL
    FROM raw_mm_vmscan_direct_reclaim_end AS d
    UNION ALL
    SELECT m.tid, m.seq, m.ts, 'memcg', NULL, NULL
    FROM raw_mm_vmscan_memcg_reclaim_begin AS m
    UNION ALL
    SELECT m.tid, m.seq, m.ts, 'memcg end', NULL, NULL
    FROM raw_mm_vmscan_memcg_reclaim_end AS m
    UNION ALL
    SELECT m.tid, m.seq, m.ts, 'memcg', NULL, NULL
    FROM raw_mm_vmscan_memcg_softlimit_reclaim_begin AS m
    UNION ALL
    SELECT m.tid, m.seq, m.ts, 'memcg end', NULL, NULL
    FROM raw_mm_vmscan_memcg_softlimit_reclaim_end AS m
  ),
  inside AS (
    SELECT
      s.tid,
      s.seq,
      s.ts,
      s.step,
      s.pfn,
      s.reclaim_flags,
      max(CASE WHEN s.step = 'direct' THEN s.seq END) OVER task
        > coalesce(
          max(CASE WHEN s.step = 'direct end' THEN s.seq END) OVER task,
          0
        ) AS in_direct,
      max(CASE WHEN s.step = 'memcg' THEN s.seq END) OVER task
        > coalesce(
          max(CASE WHEN s.step = 'memcg end' THEN s.seq END) OVER task,
          0
        ) AS in_memcg
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING)
  ),
  placed AS (
    SELECT
      i.seq,
      i.ts,
      i.tid,
      i.pfn,
      i.reclaim_flags,
      i.in_direct,
      i.in_memcg,
      (
        SELECT count(*)
        FROM raw_zone AS z
        WHERE i.pfn >= z.start_pfn AND i.pfn < z.start_pfn + z.spanned_count
      ) AS zones_count
    FROM inside AS i
    WHERE i.step = 'write'
  )
SELECT
  p.seq,
  p.ts,
  p.tid,
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
  CASE
    WHEN t.comm GLOB 'kswapd[0-9]*' OR k.tid IS NOT NULL THEN 'kswapd'
    WHEN p.in_memcg THEN 'memcg'
    WHEN p.in_direct THEN 'direct'
    ELSE 'other'
  END AS reclaimer
FROM placed AS p
LEFT JOIN raw_zone AS z
  ON p.zones_count = 1
  AND p.pfn >= z.start_pfn
  AND p.pfn < z.start_pfn + z.spanned_count
LEFT JOIN wb_task AS t ON t.tid = p.tid
LEFT JOIN (SELECT DISTINCT w.tid FROM raw_mm_vmscan_kswapd_wake AS w) AS k
  ON k.tid = p.tid;
