-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_write
-- @summary  Folios that reclaim gave away to be written, by zone and by who
--   reclaimed: as a patched kernel tells it (mm_vmscan_reclaim_writeback), else
--   by the page frames of mm_vmscan_write_folio.
-- @grain    event; order seq
-- @needs    reclaim_work, reclaim_writeback, raw_zone
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock
-- @column   tid INTEGER thread that reclaims
-- @column   comm TEXT its name
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
      w.seq,
      w.ts,
      w.tid,
      w.comm,
      w.pfn,
      w.reclaim_flags,
      w.reclaimer,
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
  p.seq,
  p.ts,
  p.tid,
  p.comm,
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
  p.reclaimer,
  p.invocation,
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
  y.seq,
  y.ts,
  y.tid,
  y.comm,
  y.node,
  y.zone,
  y.kind,
  y.reclaimer,
  y.invocation,
  y.pages_count,
  y.memcg_id,
  y.cgroup_path,
  'reclaim_writeback'
FROM reclaim_writeback AS y
WHERE y.outcome = 'submitted';
