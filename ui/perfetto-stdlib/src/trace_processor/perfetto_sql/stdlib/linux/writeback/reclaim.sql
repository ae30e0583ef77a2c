-- SPDX-License-Identifier: Apache-2.0

-- @module linux.writeback.reclaim
-- Pages that memory reclaim had to write itself, which is what the counter
-- `nr_vmscan_write` of `/proc/vmstat` counts, and who had to.
--
-- Needs the ftrace event `vmscan/mm_vmscan_write_folio` (up to 5.17
-- `vmscan/mm_vmscan_writepage`), and to tell who reclaimed
-- `vmscan/mm_vmscan_kswapd_wake` and the begin and end events of direct and
-- memcg reclaim, with raw ftrace events imported.

-- Where reclaim begins and ends in a thread, and what it writes.
CREATE PERFETTO TABLE _linux_reclaim_step
AS
SELECT
  id,
  ts,
  utid,
  CASE
    WHEN name GLOB 'mm_vmscan_write*' THEN 'write'
    WHEN name = 'mm_vmscan_kswapd_wake' THEN 'kswapd'
    WHEN name = 'mm_vmscan_direct_reclaim_begin' THEN 'direct'
    WHEN name = 'mm_vmscan_direct_reclaim_end' THEN 'direct end'
    WHEN name GLOB '*_begin' THEN 'memcg'
    ELSE 'memcg end'
  END AS step,
  -- Kernels 3.x have a pointer to the page instead.
  extract_arg(arg_set_id, 'pfn') AS pfn,
  extract_arg(arg_set_id, 'reclaim_flags') AS reclaim_flags
FROM ftrace_event
WHERE
  name IN (
    'mm_vmscan_write_folio',
    'mm_vmscan_writepage',
    'mm_vmscan_kswapd_wake',
    'mm_vmscan_direct_reclaim_begin',
    'mm_vmscan_direct_reclaim_end',
    'mm_vmscan_memcg_reclaim_begin',
    'mm_vmscan_memcg_reclaim_end',
    'mm_vmscan_memcg_softlimit_reclaim_begin',
    'mm_vmscan_memcg_softlimit_reclaim_end'
  );

-- Folios that reclaim gave to a file system or to swap to be written. From
-- 6.16 on these are anonymous ones alone: reclaim writes no files any more.
-- An event is a folio, whose size it does not tell, and `nr_vmscan_write`
-- counts pages: they agree where folios are single pages.
CREATE PERFETTO TABLE linux_writeback_reclaim_write(
  -- Id of the event.
  id JOINID(ftrace_event.id),
  -- When the folio was given away.
  ts TIMESTAMP,
  -- Thread that reclaims.
  utid JOINID(thread.id),
  -- `kswapd`; `direct`: a thread that needed memory; `memcg`: one whose cgroup
  -- was at its limit; `other`: another way in, or its begin is not in the
  -- trace.
  reclaimer STRING,
  -- `anon`, to which tmpfs and shared memory belong, or `file`.
  kind STRING,
  -- Number of its first page frame; NULL of kernels 3.x.
  pfn LONG
)
AS
WITH
  -- The last begin and end of each kind before each event of the thread.
  inside AS (
    SELECT
      *,
      max(iif(step = 'direct', id, NULL)) OVER thread AS direct_id,
      max(iif(step = 'direct end', id, NULL)) OVER thread AS direct_end_id,
      max(iif(step = 'memcg', id, NULL)) OVER thread AS memcg_id,
      max(iif(step = 'memcg end', id, NULL)) OVER thread AS memcg_end_id
    FROM _linux_reclaim_step
    WINDOW
      thread AS (PARTITION BY utid ORDER BY id)
  )
SELECT
  i.id,
  i.ts,
  i.utid,
  CASE
    WHEN t.name GLOB 'kswapd[0-9]*' THEN 'kswapd'
    WHEN i.utid IN (SELECT utid FROM _linux_reclaim_step WHERE step = 'kswapd')
      THEN 'kswapd'
    -- Memcg reclaim can be nested in direct reclaim.
    WHEN i.memcg_id > coalesce(i.memcg_end_id, -1) THEN 'memcg'
    WHEN i.direct_id > coalesce(i.direct_end_id, -1) THEN 'direct'
    ELSE 'other'
  END AS reclaimer,
  -- RECLAIM_WB_ANON is bit 0, RECLAIM_WB_FILE bit 1.
  CASE i.reclaim_flags & 3
    WHEN 1 THEN 'anon'
    WHEN 2 THEN 'file'
  END AS kind,
  i.pfn
FROM inside AS i
LEFT JOIN thread AS t USING (utid)
WHERE
  i.step = 'write'
ORDER BY
  i.id;

-- Folios that reclaim gave away to be written, by who reclaimed and kind.
CREATE PERFETTO VIEW linux_writeback_reclaim_write_by_reclaimer(
  -- As in `linux_writeback_reclaim_write`.
  reclaimer STRING,
  -- As in `linux_writeback_reclaim_write`.
  kind STRING,
  -- Threads that reclaimed.
  thread_count LONG,
  -- Folios given away.
  folio_count LONG
)
AS
SELECT
  reclaimer,
  kind,
  count(DISTINCT utid) AS thread_count,
  count() AS folio_count
FROM linux_writeback_reclaim_write
GROUP BY
  reclaimer,
  kind;

-- Folios that reclaim gave away to be written, by memory node, zone, who
-- reclaimed and kind. The events tell page frames alone, so the caller brings
-- the spans of the zones, which `/proc/zoneinfo` of the traced machine has
-- (`start_pfn` and `spanned`). Columns of the answer: node, zone, reclaimer,
-- kind, folio_count. zone is `ambiguous` where spans overlap and `unknown`
-- where none has the page frame; node is NULL then.
CREATE PERFETTO MACRO linux_writeback_reclaim_write_by_zone(
  -- Table or subquery with a row for each zone that has pages: node LONG,
  -- zone STRING, start_pfn LONG, spanned LONG.
  zones TableOrSubquery
)
-- Rows by node, zone, reclaimer and kind.
RETURNS TableOrSubquery
AS (
  SELECT
    placed.node,
    placed.zone,
    placed.reclaimer,
    placed.kind,
    count() AS folio_count
  FROM (
    SELECT
      w.reclaimer,
      w.kind,
      iif(count(z.zone) = 1, min(z.node), NULL) AS node,
      CASE count(z.zone)
        WHEN 0 THEN 'unknown'
        WHEN 1 THEN min(z.zone)
        ELSE 'ambiguous'
      END AS zone
    FROM linux_writeback_reclaim_write AS w
    LEFT JOIN $zones AS z
      ON w.pfn >= z.start_pfn
      AND w.pfn < z.start_pfn + z.spanned
    GROUP BY
      w.id
  ) AS placed
  GROUP BY
    placed.node,
    placed.zone,
    placed.reclaimer,
    placed.kind
);
