-- SPDX-License-Identifier: Apache-2.0
-- What a reader of reclaim, its counters and page faults must know.

-- @warning  folios_scaled
-- @scope    reclaim_writes
-- @sentence nr_vmscan_write gained {all_count} pages in {events_count}
--   events, so folios were larger than a page; pages_count is scaled to the
--   counter
SELECT s.all_count, s.events_count
FROM reclaim_run AS s
WHERE s.is_complete
  AND s.events_count > 0
  AND s.basis = 'pfn'
  AND s.all_count > s.events_count;

-- @warning  not_scaled
-- @scope    reclaim_writes
-- @sentence nr_vmscan_write gained {all_count} pages in {events_count}
--   events; events are missing from this trace, so pages_count counts each
--   folio as one page and the sum is too small
SELECT s.all_count, s.events_count
FROM reclaim_run AS s
WHERE NOT s.is_complete
  AND s.basis = 'pfn'
  AND s.all_count > s.events_count;

-- @warning  reclaimer_unknown
-- @scope    reclaim_writes
-- @sentence direct reclaim was not recorded, so its writes count as other; add
--   -e vmscan:mm_vmscan_direct_reclaim_begin and _end
SELECT s.events_count
FROM reclaim_run AS s
WHERE s.events_count > 0
  AND s.basis = 'pfn'
  AND NOT recorded!('vmscan:mm_vmscan_direct_reclaim_begin');

-- @warning  vmstat_below_events
-- @scope    reclaim_writes
-- @sentence nr_vmscan_write gained {all_count} pages, fewer than the {told}
--   of the trace: vmstat.before and vmstat.after do not enclose it
SELECT
  s.all_count,
  CASE s.basis
    WHEN 'pfn' THEN s.events_count || ' events'
    ELSE s.pages_count || ' pages'
  END AS told
FROM reclaim_run AS s
CROSS JOIN wb_rule AS v
-- The counter is so much behind at most, by what each CPU keeps to itself.
WHERE s.all_count + v.counter_lag_pages * coalesce(
    (SELECT m.value FROM raw_meta AS m WHERE m.key = 'cpus_count'), 1
  ) < coalesce(s.pages_count, s.events_count);

-- @warning  vmstat_above_events
-- @scope    reclaim_writes
-- @sentence nr_vmscan_write gained {all_count} pages, more than the
--   {pages_count} of mm_vmscan_reclaim_writeback: events are missing from this
--   trace, or vmstat.before and vmstat.after are far from it
SELECT s.all_count, s.pages_count
FROM reclaim_run AS s
WHERE s.basis = 'reclaim_writeback' AND s.all_count > s.pages_count;

-- @warning  no_vmstat_scale
-- @slug     no-vmstat
-- @scope    reclaim_writes
-- @sentence vmstat.before and vmstat.after are missing, so pages_count counts
--   each folio as one page
SELECT s.events_count
FROM reclaim_run AS s
WHERE s.events_count > 0 AND s.basis = 'pfn' AND s.all_count IS NULL;

-- @warning  no_zoneinfo
-- @scope    reclaim_writes
-- @sentence the run has no zoneinfo file, so page frames cannot be put into
--   zones
SELECT s.events_count
FROM reclaim_run AS s
WHERE s.events_count > 0
  AND s.basis = 'pfn'
  AND NOT EXISTS (SELECT 1 FROM raw_zone);

-- @warning  no_file_writes_by_design
-- @scope    reclaim_writes
-- @sentence from 6.16 on reclaim writes no file folios (this is {release}); for
--   reclaim that met dirty file pages see nr_vmscan_immediate_reclaim
SELECT k.release
FROM wb_units AS k
WHERE k.version >= 6016;

-- @warning  reached_no_device
-- @scope    reclaim_writes, reclaim_destinations, reclaim_efficiency,
--   mmtests_vmstat, task_faults
-- @sentence {unwritten_count} of {all_count} pages ({percent} %) that reclaim
--   sent to writeback reached no device:{zero}{zswap}{rest} nr_vmscan_write
--   counts attempts
SELECT
  d.unwritten_count, d.all_count,
  CAST(100.0 * d.unwritten_count / d.all_count AS INTEGER) AS percent,
  CASE WHEN d.zero_count > 0
    THEN ' ' || d.zero_count || ' were zero-filled (swpout_zero);' ELSE ''
  END AS zero,
  CASE WHEN d.zswap_count > 0
    THEN ' ' || d.zswap_count || ' went to zswap;' ELSE ''
  END AS zswap,
  CASE WHEN d.file_count IS NOT NULL AND d.rest_count > 0
    THEN ' no counter tells of ' || d.rest_count || ';' ELSE ''
  END AS rest
FROM reclaim_run AS d
CROSS JOIN wb_rule AS v
WHERE d.all_count > 0
  AND d.unwritten_count > (1 - v.reached_least_ratio) * d.all_count;

-- @warning  more_than_reclaim
-- @scope    reclaim_destinations
-- @sentence the counters of swap and files gained more pages than
--   nr_vmscan_write ({all_count}): others also write to swap, or
--   vmstat.before and vmstat.after do not enclose the trace
SELECT d.all_count
FROM reclaim_run AS d
WHERE d.all_count > 0 AND d.rest_count IS NULL AND d.device_count IS NOT NULL;

-- @warning  mglru_scans
-- @scope    reclaim_efficiency, mmtests_vmstat
-- @sentence MGLRU: scanned pages are the {isolated} that were isolated, which
--   is what /proc/vmstat counts; mm_vmscan_lru_shrink_inactive adds up to
--   {looked_at}, for it counts all that were looked at
SELECT s.isolated, s.looked_at
FROM (
  SELECT
    (SELECT sum(i.nr_taken) FROM raw_mm_vmscan_lru_isolate AS i) AS isolated,
    (SELECT sum(l.nr_scanned) FROM raw_mm_vmscan_lru_shrink_inactive AS l)
      AS looked_at
  FROM reclaim_run AS b
  WHERE b.is_mglru = 1
) AS s
WHERE s.looked_at <> s.isolated;

-- @warning  faults_not_recorded
-- @scope    task_faults
-- @sentence page faults were not recorded (x86 and RISC-V only), so there are
--   no faults; add -e exceptions:page_fault_user -e
--   exceptions:page_fault_kernel
SELECT k.release
FROM wb_units AS k
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_event_format AS f
  WHERE f.event LIKE 'exceptions:page_fault%'
);

-- @warning  faults_not_loaded
-- @scope    task_faults
-- @sentence the trace has {faults} page faults that were not loaded; ingest it
--   with --events "exceptions:*"
SELECT sum(c.count) AS faults
FROM raw_event_counts AS c
WHERE c.event LIKE 'exceptions:page_fault%' AND c.loaded_count < c.count
HAVING count(*) > 0;

-- @warning  scans_not_recorded
-- @scope    reclaim_efficiency, mmtests_vmstat
-- @sentence mm_vmscan_lru_shrink_inactive was not recorded, so events tell no
--   scans; add -e vmscan
SELECT 1 AS is_so
WHERE NOT recorded!('vmscan:mm_vmscan_lru_shrink_inactive');

-- @warning  scans_without_events
-- @scope    reclaim_efficiency
-- @sentence /proc/vmstat has scans and the trace none: up to 6.6 the
--   multi-generational LRU (MGLRU) scans without events
SELECT v.name
FROM wb_vmstat AS v
WHERE v.name IN ('pgscan_kswapd', 'pgscan_kswapd_normal')
  AND v.gained_count > 0
  AND recorded!('vmscan:mm_vmscan_lru_shrink_inactive')
  AND NOT EXISTS (
    SELECT 1
    FROM raw_event_counts AS c
    WHERE c.event = 'vmscan:mm_vmscan_lru_shrink_inactive' AND c.count > 0
  );

-- @warning  no_vmstat
-- @scope    reclaim_efficiency, mmtests_vmstat
-- @sentence vmstat.before and vmstat.after are missing, so only events count
SELECT 1 AS is_so
WHERE NOT EXISTS (
  SELECT 1 FROM wb_vmstat AS v WHERE v.gained_count IS NOT NULL
);

-- @warning  no_vmstat_destinations
-- @slug     no-vmstat
-- @scope    reclaim_destinations
-- @sentence vmstat.before and vmstat.after are missing, so the destination of
--   the pages is unknown
SELECT 1 AS is_so
WHERE NOT EXISTS (
  SELECT 1 FROM wb_vmstat AS v WHERE v.gained_count IS NOT NULL
);
