-- SPDX-License-Identifier: Apache-2.0
-- What must be known before a number is believed.

-- @view     wb_warning
-- @shared
-- @summary  What the reader of an answer must know. The runner shows the rows
--   of a query's name and those of '*' with every answer.
-- @grain    warning; order scope, slug
-- @column   scope TEXT name of a query, or *
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_warning AS
SELECT
  '*' AS scope,
  'damaged-trace' AS slug,
  'the trace is damaged and was read only in part: '
    || coalesce(
      (SELECT m.value FROM raw_meta AS m WHERE m.key = 'damage'), 'no details'
    ) AS message
FROM raw_meta AS d
WHERE d.key = 'damaged' AND d.value = 1
UNION ALL
SELECT
  '*',
  'no-events',
  'no event was recorded, so nothing can be said of the run'
FROM raw_meta AS n
WHERE n.key = 'events_count' AND n.value = 0
UNION ALL
SELECT
  '*',
  'part-of-trace',
  'only a part of the trace was read (ingest --time-range or --limit), so sums'
    || ' are those of that part'
FROM raw_meta AS p
WHERE p.key = 'partial' AND p.value = 1
UNION ALL
SELECT
  '*',
  'recording-cut-short',
  'the recording ended before its time (' || r.value || '), so the trace is'
    || ' not whole'
    || coalesce(
      ': '
        || (SELECT p.value FROM raw_meta AS p WHERE p.key = 'record_problems'),
      ''
    )
FROM raw_meta AS r
WHERE r.key = 'record_ended' AND r.value != 'complete'
UNION ALL
SELECT
  '*',
  'recording-problems',
  'the recorder met problems: ' || r.value
FROM raw_meta AS r
CROSS JOIN raw_meta AS e
WHERE r.key = 'record_problems'
  AND e.key = 'record_ended'
  AND e.value = 'complete'
UNION ALL
SELECT
  '*',
  'other-machines',
  'the trace holds events of ' || m.value || ' machines or tracing instances;'
    || ' those of the first were read, and ' || o.value || ' of the others left'
    || ' out: convert each trace.dat to a file of its own, or ask it itself'
FROM raw_meta AS m
CROSS JOIN raw_meta AS o
WHERE m.key = 'machines_count' AND o.key = 'other_machines_events_count'
UNION ALL
SELECT
  '*',
  'events-refused',
  'Perfetto could not enable ' || r.value || ': what is made of them is'
    || ' missing; run its recorder as root, on Android with a build that may'
FROM raw_meta AS r
WHERE r.key = 'refused_events'
UNION ALL
SELECT
  '*',
  'command-failed',
  'the command that was recorded '
    || CASE r.key
      WHEN 'command_signal' THEN 'was ended by signal '
      ELSE 'exited with '
    END
    || r.value
    || ', so it may not have done its work'
FROM raw_meta AS r
WHERE r.key IN ('command_exit_code', 'command_signal') AND r.value != 0
UNION ALL
SELECT
  '*',
  'lost-events',
  'the ring buffer overran ' || count(*) || ' times, '
    || CASE
      WHEN count(l.count) = 0 THEN 'an unknown number of events is lost'
      WHEN count(l.count) < count(*)
        THEN 'at least ' || sum(l.count) || ' events are lost'
      ELSE sum(l.count) || ' events are lost'
    END
    || '; sums over events are too small'
FROM raw_lost_events AS l
HAVING count(*) > 0
UNION ALL
SELECT
  '*',
  'data-loss-' || replace(i.name, '_', '-'),
  i.name || ' is ' || i.value || ': data of the trace is missing, so sums are'
    || ' too small; docs/schema.md says what it counts'
FROM wb_unread AS i
WHERE i.is_record = 0
  -- These have warnings of their own.
  AND i.name NOT IN (
    'text_not_understood',
    'text_overwritten',
    'text_cut',
    -- From here on: they are in lost_events.
    'perfetto_ftrace_cpu_has_data_loss',
    'perfetto_ftrace_cpu_overrun_delta',
    'perfetto_ftrace_cpu_dropped_events_delta',
    'perfetto_traced_buf_trace_writer_packet_loss',
    'perfetto_traced_buf_patches_failed'
  )
UNION ALL
SELECT
  '*',
  'records-not-read',
  CASE i.name
    WHEN 'unknown_events'
      THEN i.value || ' records are of events whose format is not in the trace'
    WHEN 'short_records'
      THEN i.value || ' records are shorter than the format of their event'
    ELSE i.value || ' fields point outside of their record'
  END
    || ', so sums are too small'
FROM wb_unread AS i
WHERE i.is_record = 1
UNION ALL
SELECT
  '*',
  'missing-field',
  f.event || ' has no field ' || f.field
    || ' that wbscope knows, so what is made of it is missing (the kernel is '
    || coalesce(k.release, 'unknown') || ')'
FROM wb_lacking_field AS f
CROSS JOIN wb_kernel AS k
UNION ALL
SELECT
  '*',
  'sidecar-' || f.status,
  f.name || ': ' || f.message || '; values that need it may be missing'
FROM raw_sidecar_file AS f
WHERE f.status <> 'loaded'
UNION ALL
SELECT
  '*',
  'page-size-assumed',
  'the trace does not tell the page size of its machine; bytes are pages of '
    || u.page_bytes || ' bytes'
FROM wb_units AS u
WHERE NOT EXISTS (SELECT 1 FROM raw_meta AS m WHERE m.key = 'page_bytes')
UNION ALL
SELECT
  '*',
  'time-backwards',
  'the time stamps of ' || i.value || ' records are before those of the record'
    || ' before them: durations there are wrong, and windows, --from and --to'
    || ' can take records of their neighbours'
FROM raw_ingest_stats AS i
WHERE i.name = 'time_backwards' AND i.value > 0
UNION ALL
SELECT
  '*',
  'lines-not-understood',
  i.value || ' lines of the text are no record and were left out'
FROM raw_ingest_stats AS i
WHERE i.name = 'text_not_understood' AND i.value > 0
UNION ALL
SELECT
  '*',
  'lines-left-out',
  CASE m.value
    WHEN 1 THEN 'a mark in the text stands for lines left out'
    ELSE m.value || ' marks in the text stand for lines left out'
  END || ': times go over the gap'
FROM raw_meta AS m
WHERE m.key = 'elided_lines_count'
UNION ALL
SELECT
  '*',
  'records-overwritten',
  'the ring buffer had overwritten ' || i.value || ' records before the text'
    || ' was read; sums over events are too small'
FROM raw_ingest_stats AS i
WHERE i.name = 'text_overwritten' AND i.value > 0
UNION ALL
SELECT
  '*',
  'no-time',
  'the lines of this log have no time stamps: every ts is 0'
FROM raw_meta AS m
WHERE m.key = 'clock_unit' AND m.value = 'none'
UNION ALL
SELECT
  b.scope,
  'goal-is-no-setpoint',
  'this kernel recorded goal (thresh - thresh / 8), not setpoint; setpoint'
    || ' and position are not to be compared with those of kernels from 3.2 on'
FROM (
  SELECT 'throttle_by_task' AS scope
  UNION ALL SELECT 'bdi_dirty'
  UNION ALL SELECT 'stalls'
  UNION ALL SELECT 'stalls_by_task'
) AS b
-- A trace is of one kernel, so its first event tells.
WHERE (
  SELECT g.goal FROM raw_balance_dirty_pages AS g ORDER BY g.seq LIMIT 1
) IS NOT NULL
UNION ALL
SELECT
  'throttle_by_task',
  'hz-unknown',
  'HZ could not be inferred from the recorded times, so intended sleeps are'
    || ' without the half jiffy that they last longer on average'
FROM wb_hz AS h
CROSS JOIN raw_event_counts AS c
WHERE h.hz IS NULL AND c.event = 'writeback:balance_dirty_pages'
UNION ALL
SELECT
  q.scope,
  'waits-without-events',
  count(*) || ' calls of balance_dirty_pages() waited '
    || CAST(total(w.wait_ns) / max(w.ms_ns) AS INTEGER)
    || ' ms, but none of their events with a pause is in the trace; sleeps lack'
    || ' that'
FROM (
  SELECT d.wait_ns, u.ms_ns
  FROM wb_throttle_unseen AS d
  CROSS JOIN wb_units AS u
) AS w
CROSS JOIN (
  SELECT 'throttle_by_task' AS scope
  UNION ALL
  SELECT 'throttle_summary'
  UNION ALL
  SELECT 'throttle_windows'
  UNION ALL
  SELECT 'stalls'
) AS q
GROUP BY q.scope
UNION ALL
SELECT
  'throughput',
  'short-window',
  'windows are shorter than the second in which the kernel folds its counters,'
    || ' so single windows are noisy'
FROM wb_params AS p
CROSS JOIN wb_units AS u
WHERE p.window_ns < u.second_ns
UNION ALL
SELECT
  'reclaim_writes',
  'folios-scaled',
  'nr_vmscan_write gained ' || s.vmstat_count || ' pages in ' || s.events_count
    || ' events, so folios were larger than a page;'
    || ' pages_count is scaled to the counter'
FROM reclaim_write_scale AS s
WHERE s.is_complete
  AND s.events_count > 0
  AND s.basis = 'pfn'
  AND s.vmstat_count > s.events_count
UNION ALL
SELECT
  'reclaim_writes',
  'not-scaled',
  'nr_vmscan_write gained ' || s.vmstat_count || ' pages in ' || s.events_count
    || ' events; events are missing from this trace, so pages_count counts each'
    || ' folio as one page and the sum is too small'
FROM reclaim_write_scale AS s
WHERE NOT s.is_complete
  AND s.basis = 'pfn'
  AND s.vmstat_count > s.events_count
UNION ALL
SELECT
  '*',
  'clock-without-unit',
  'the trace clock ' || c.value || ' counts ticks, not ns: every time and rate'
    || ' is wrong; record with trace-cmd record -C mono'
FROM raw_meta AS u
CROSS JOIN raw_meta AS c
WHERE u.key = 'clock_unit' AND u.value = 'ticks' AND c.key = 'clock'
UNION ALL
SELECT
  '*',
  'cgroup-by-path',
  'cgroup_ino ' || g.cgroup_ino || ' stands for ' || g.path || ': this kernel'
    || ' records paths, and the run has no cgroups file with this one'
FROM wb_cgroup AS g
WHERE g.cgroup_ino < 0
UNION ALL
SELECT
  '*',
  'several-buffers',
  'the trace has ' || count(b.subbuf_bytes) || ' tracing instances; each event'
    || ' is taken from the first one that has it'
FROM raw_buffer AS b
HAVING count(b.subbuf_bytes) > 1
UNION ALL
SELECT
  'reclaim_writes',
  'reclaimer-unknown',
  'direct reclaim was not recorded, so its writes count as other; add -e'
    || ' vmscan:mm_vmscan_direct_reclaim_begin and _end'
FROM reclaim_write_scale AS s
WHERE s.events_count > 0
  AND s.basis = 'pfn'
  AND NOT EXISTS (
    SELECT 1
    FROM raw_event_format AS f
    WHERE f.event = 'vmscan:mm_vmscan_direct_reclaim_begin'
  )
UNION ALL
SELECT
  'reclaim_writes',
  'vmstat-below-events',
  'nr_vmscan_write gained ' || s.vmstat_count || ' pages, fewer than the '
    || CASE s.basis
      WHEN 'pfn' THEN s.events_count || ' events'
      ELSE s.pages_count || ' pages'
    END
    || ' of the trace: vmstat.before and vmstat.after do not enclose it'
FROM reclaim_write_scale AS s
CROSS JOIN wb_rule AS v
-- The counter is so much behind at most, by what each CPU keeps to itself.
WHERE s.vmstat_count + v.counter_lag_pages * coalesce(
    (SELECT m.value FROM raw_meta AS m WHERE m.key = 'cpus_count'), 1
  ) < coalesce(s.pages_count, s.events_count)
UNION ALL
SELECT
  'reclaim_writes',
  'vmstat-above-events',
  'nr_vmscan_write gained ' || s.vmstat_count || ' pages, more than the '
    || s.pages_count || ' of mm_vmscan_reclaim_writeback: events are missing'
    || ' from this trace, or vmstat.before and vmstat.after are far from it'
FROM reclaim_write_scale AS s
WHERE s.basis = 'reclaim_writeback' AND s.vmstat_count > s.pages_count
UNION ALL
SELECT
  'reclaim_writes',
  'no-vmstat',
  'vmstat.before and vmstat.after are missing, so pages_count counts each folio'
    || ' as one page'
FROM reclaim_write_scale AS s
WHERE s.events_count > 0 AND s.basis = 'pfn' AND s.vmstat_count IS NULL
UNION ALL
SELECT
  'reclaim_writes',
  'no-zoneinfo',
  'the run has no zoneinfo file, so page frames cannot be put into zones'
FROM reclaim_write_scale AS s
WHERE s.events_count > 0
  AND s.basis = 'pfn'
  AND NOT EXISTS (SELECT 1 FROM raw_zone)
UNION ALL
SELECT
  'reclaim_writes',
  'no-file-writes-by-design',
  'from 6.16 on reclaim writes no file folios (this is ' || k.release
    || '); for reclaim that met dirty file pages see '
    || 'nr_vmscan_immediate_reclaim'
FROM wb_kernel AS k
WHERE k.version >= 6016
UNION ALL
SELECT
  e.scope,
  'reached-no-device',
  d.unwritten_count || ' of ' || d.all_count || ' pages ('
    || CAST(100.0 * d.unwritten_count / d.all_count AS INTEGER)
    || ' %) that reclaim gave away to be written reached no device:'
    || CASE WHEN d.zero_count > 0
      THEN ' ' || d.zero_count || ' were zero-filled (swpout_zero);' ELSE ''
    END
    || CASE WHEN d.zswap_count > 0
      THEN ' ' || d.zswap_count || ' went to zswap;' ELSE ''
    END
    || CASE WHEN d.file_count IS NOT NULL AND d.rest_count > 0
      THEN ' no counter tells of ' || d.rest_count || ';' ELSE ''
    END
    || ' nr_vmscan_write counts attempts'
FROM reclaim_destination AS d
CROSS JOIN wb_rule AS v
CROSS JOIN (
  SELECT 'reclaim_writes' AS scope
  UNION ALL
  SELECT 'reclaim_destinations'
  UNION ALL
  SELECT 'reclaim_efficiency'
  UNION ALL
  SELECT 'mmtests_vmstat'
  UNION ALL
  SELECT 'task_faults'
) AS e
WHERE d.all_count > 0
  AND d.unwritten_count > (1 - v.reached_least_ratio) * d.all_count
UNION ALL
SELECT
  'reclaim_destinations',
  'more-than-reclaim',
  'the counters of swap and files gained more pages than nr_vmscan_write ('
    || d.all_count || '): others write to swap, too, or vmstat.before and'
    || ' vmstat.after do not enclose the trace'
FROM reclaim_destination AS d
WHERE d.all_count > 0 AND d.rest_count IS NULL AND d.device_count IS NOT NULL
UNION ALL
SELECT
  e.scope,
  'mglru-scans',
  'MGLRU: scanned pages are the ' || s.isolated || ' that were isolated, which'
    || ' is what /proc/vmstat counts; mm_vmscan_lru_shrink_inactive adds up to '
    || s.looked_at || ', for it counts all that were looked at'
FROM (
  SELECT
    (SELECT sum(i.nr_taken) FROM raw_mm_vmscan_lru_isolate AS i) AS isolated,
    (SELECT sum(l.nr_scanned) FROM raw_mm_vmscan_lru_shrink_inactive AS l)
      AS looked_at
  FROM reclaim_scan_basis AS b
  WHERE b.is_mglru = 1
) AS s
CROSS JOIN (
  SELECT 'reclaim_efficiency' AS scope UNION ALL SELECT 'mmtests_vmstat'
) AS e
WHERE s.looked_at <> s.isolated
UNION ALL
SELECT
  'copy_and_sync',
  'writes-not-recorded',
  'write calls were not recorded, so there are no copies; add'
    || ' -e syscalls:sys_enter_write -e syscalls:sys_exit_write'
FROM wb_kernel AS k
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_event_format AS f
  WHERE f.event IN (
    'syscalls:sys_exit_write',
    'syscalls:sys_exit_writev',
    'syscalls:sys_exit_pwrite64',
    'syscalls:sys_exit_copy_file_range',
    'syscalls:sys_exit_sendfile64'
  )
)
UNION ALL
SELECT
  'task_faults',
  'faults-not-recorded',
  'page faults were not recorded (x86 and RISC-V only), so there are no faults;'
    || ' add -e exceptions:page_fault_user -e exceptions:page_fault_kernel'
FROM wb_kernel AS k
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_event_format AS f
  WHERE f.event LIKE 'exceptions:page_fault%'
)
UNION ALL
SELECT
  'task_faults',
  'faults-not-loaded',
  'the trace has ' || sum(c.count) || ' page faults that were not loaded;'
    || ' ingest it with --events "exceptions:*"'
FROM raw_event_counts AS c
WHERE c.event LIKE 'exceptions:page_fault%' AND c.loaded_count < c.count
HAVING count(*) > 0
UNION ALL
SELECT
  e.scope,
  'scans-not-recorded',
  'mm_vmscan_lru_shrink_inactive was not recorded, so events tell no scans;'
    || ' add -e vmscan'
FROM (
  SELECT 'reclaim_efficiency' AS scope UNION ALL SELECT 'mmtests_vmstat'
) AS e
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_event_format AS f
  WHERE f.event = 'vmscan:mm_vmscan_lru_shrink_inactive'
)
UNION ALL
SELECT
  'reclaim_efficiency',
  'scans-without-events',
  '/proc/vmstat has scans and the trace none: up to 6.6 the multi-generational'
    || ' LRU (MGLRU) scans without events'
FROM wb_vmstat AS v
WHERE v.name IN ('pgscan_kswapd', 'pgscan_kswapd_normal')
  AND v.gained_count > 0
  AND EXISTS (
    SELECT 1
    FROM raw_event_format AS f
    WHERE f.event = 'vmscan:mm_vmscan_lru_shrink_inactive'
  )
  AND NOT EXISTS (
    SELECT 1
    FROM raw_event_counts AS c
    WHERE c.event = 'vmscan:mm_vmscan_lru_shrink_inactive' AND c.count > 0
  )
UNION ALL
SELECT
  e.scope,
  'no-vmstat',
  'vmstat.before and vmstat.after are missing, so '
    || CASE e.scope
      WHEN 'reclaim_destinations' THEN 'nothing tells where pages went'
      ELSE 'only events count'
    END
FROM (
  SELECT 'reclaim_efficiency' AS scope
  UNION ALL
  SELECT 'mmtests_vmstat'
  UNION ALL
  SELECT 'reclaim_destinations'
) AS e
WHERE NOT EXISTS (
  SELECT 1 FROM wb_vmstat AS v WHERE v.gained_count IS NOT NULL
)
UNION ALL
SELECT
  e.scope,
  'no-samples',
  'the run has no ' || e.source || '.samples; wbscope record takes them'
    || CASE e.source WHEN 'cgroup' THEN ' of cgroups that write' ELSE '' END
FROM (
  SELECT 'bdi_samples' AS scope, 'bdi' AS source
  UNION ALL
  SELECT 'block_samples', 'block'
  UNION ALL
  SELECT 'cgroup_samples', 'cgroup'
  UNION ALL
  SELECT 'pressure', 'psi'
) AS e
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_sample AS s
  WHERE s.source = e.source AND s.sample = 'sampled'
);

-- @view     wb_dirtied_warning
-- @shared
-- @summary  What the reader of what tasks dirtied must know.
-- @grain    warning; order slug
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_dirtied_warning AS
SELECT
  'little-coverage' AS slug,
  'events charge ' || CAST(100 * max(d.coverage_ratio) + 0.5 AS INTEGER)
    || ' % of what the machine dirtied, and nothing tells who dirtied the rest:'
    || ' what tasks dirtied are lower bounds, and there is no index of'
    || ' fairness; wbscope record tells it from probes' AS message
FROM wb_task_dirtied AS d
CROSS JOIN wb_rule AS v
WHERE d.basis = 'bound'
  AND d.is_incidental = 0
  AND d.coverage_ratio < v.coverage_least_ratio
HAVING count(*) > 0;

-- @view     wb_fairness_warning
-- @shared
-- @summary  What the reader of an index of fairness must know.
-- @grain    warning; order slug
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
CREATE VIEW wb_fairness_warning AS
SELECT d.slug, d.message
FROM wb_dirtied_warning AS d
UNION ALL
SELECT
  'demand-unknown',
  'nothing tells what the writers of ' || min(r.bdi)
    || CASE WHEN min(r.bdi) <> max(r.bdi) THEN ' and others' ELSE '' END
    || ' asked for, so there is no weighted index: record sched_switch'
    || ' (profile deep), or let fio write fio.json'
FROM wb_task_rate AS r
CROSS JOIN wb_params AS p
WHERE r.demand_basis = 'none'
  AND p.by_window = 0
  AND (p.bdi IS NULL OR r.bdi = p.bdi)
HAVING count(*) > 0;

-- @view     wb_disk_warning
-- @shared
-- @summary  What the reader of causes must know of disks.
-- @grain    warning; order slug
-- @optional writeback:balance_dirty_pages, block:block_rq_issue,
--   block:block_rq_complete
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_disk_warning AS
SELECT
  'disk-unknown' AS slug,
  'whether the disk of ' || u.bdi || ' was busy is not known: it has no block'
    || ' request, as LVM, dm-crypt, md and btrfs have none, and nothing tells'
    || ' which disks it lies on (' || u.disks || ' wrote); wbscope record notes'
    || ' it, or write the file stacks by hand, with lines such as ' || u.bdi
    || ' ' || u.disk AS message
FROM wb_disk_unknown AS u;
