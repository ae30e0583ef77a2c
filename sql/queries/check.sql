-- SPDX-License-Identifier: Apache-2.0
-- What is wrong.

-- @query    check
-- @title    Does the trace agree with what is beside it?
-- @summary  The trace beside every independent source: vmstat, fio, file sizes,
--   system calls, disks, the scheduler, and the kernel's control law.
-- @read     A row that differs with is_binding 1 says that the trace is not
--   whole, that the files are of another time, or that a number is wrong;
--   others can have a reason in the workload. Files that are read before and
--   after a trace count more than it. law lists rates that are not the law's.
-- @grain    comparison; order as listed
-- @keys     source, what
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state,
--   writeback:bdi_dirty_ratelimit, block:block_rq_complete,
--   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_lru_shrink_inactive,
--   vmscan:mm_vmscan_direct_reclaim_begin, sched:sched_switch,
--   syscalls:sys_exit_write
-- @column   source TEXT what the trace is compared with
-- @column   what TEXT what is compared
-- @column   unit TEXT of both values: pages, bytes, calls, ns or events
-- @column   trace_value INTEGER of the trace, or events replayed; NULL = none
-- @column   other_value INTEGER of the source; NULL = not recorded; with its
--   rate
-- @column   residual_ratio REAL (other - trace) / other; of the control law the
--   share of events that disagree; NULL = not comparable
-- @column   bound_ratio REAL a residual beyond it differs or is not comparable
-- @column   verdict TEXT agrees, differs, not recorded, or not comparable: both
--   are there and tell nothing of each other
-- @column   is_binding INTEGER 1: the trace of a whole run has to agree; 0:
--   other writers, deleted files, direct I/O and so on can make a difference
-- @column   why TEXT what the verdict rests on
-- @source   wb_rule has the tolerances; docs/check.md
WITH
  compared AS (
    SELECT
      c.place, c.source, c.what, c.unit, c.trace_value, c.other_value,
      c.is_binding, c.slack,
      -- Read before and after the trace, the files count more, never less. A
      -- Perfetto trace has samples instead, which lie within it. How much more
      -- is no fault where the trace tells the counter at two events only.
      CASE c.is_state WHEN 0 THEN v.enclosed_ratio END AS more_ratio,
      CASE c.is_within WHEN 1 THEN v.enclosed_ratio ELSE 0 END AS less_ratio,
      CASE
        WHEN c.is_outside = 1
          THEN 'the counter in the trace is not between those of the files'
      END AS differs_why,
      'the files count far more than the trace: events are missing, or the'
        || ' files were not read right before and after it' AS more_why,
      'the files count less than the trace: they do not enclose it, or are of'
        || ' another machine; of scans MGLRU counts only what it isolates'
        AS less_why,
      CASE
        WHEN c.trace_value = c.other_value THEN 'equal'
        WHEN c.what = 'swap and files'
          THEN 'nearly all that reclaim gave away went to swap or to files'
        WHEN c.is_within = 1
          THEN 'the samples lie within the trace, so they may count less'
        WHEN c.trace_value > c.other_value
          THEN 'CPUs add up their counters once a second'
        ELSE 'the files enclose the trace, so they may count more'
      END AS about,
      CASE c.is_state
        WHEN 1
          THEN 'too much of it was before the first global_dirty_state or after'
            || ' the last'
        ELSE 'there is too little of it: counters lag by as much'
      END AS unsure_why,
      c.unknown_why
    FROM _check_counter AS c
    CROSS JOIN wb_rule AS v
    UNION ALL
    SELECT
      b.place, b.source, b.what, b.unit, b.trace_value, b.other_value, 0,
      CASE b.unit WHEN 'ns' THEN v.loss_least_ns
        ELSE v.counter_lag_pages * u.page_bytes
      END,
      CASE b.is_more WHEN 1 THEN v.enclosed_ratio ELSE v.same_ratio END,
      v.same_ratio, NULL, b.differs_why, b.differs_why, b.about,
      'there is too little of it: counters lag by as much',
      b.unknown_why
    FROM _check_bytes AS b
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    UNION ALL
    SELECT
      17, 'sched_switch', 'throttle sleeps', 'ns', s.pause_ns, s.slept_ns,
      1, 0,
      v.same_ratio + 1.0 * s.pauses_count * v.sleep_late_ns / s.slept_ns,
      v.same_ratio, NULL,
      'tasks slept longer than a late timer and the wait for a CPU explain',
      'tasks slept less than they were told: sleeps or events are missing',
      'a sleep ends a jiffy late and waits for a CPU',
      'pauses are so short that late timers explain any difference',
      s.unknown_why
    FROM _check_sleep AS s
    CROSS JOIN wb_rule AS v
    UNION ALL
    SELECT
      t.place, t.source, t.what, 'events', t.trace_value, t.other_value, 1, 0,
      CASE t.place WHEN 21 THEN v.same_ratio ELSE 0 END,
      NULL, t.differs_why, NULL, NULL, t.about, NULL, NULL
    FROM _check_trace AS t
    CROSS JOIN wb_rule AS v
    UNION ALL
    SELECT
      20, 'kernel', 'control law', 'events', nullif(w.replayed_count, 0),
      CASE WHEN w.replayed_count > 0 THEN w.agreed_count END,
      1, 0, v.law_ratio, v.law_ratio,
      CASE
        WHEN w.replayed_count - w.agreed_count > v.law_ratio * w.replayed_count
          THEN w.why
      END,
      NULL, NULL, w.why, NULL, CASE w.replayed_count WHEN 0 THEN w.why END
    FROM _check_law AS w
    CROSS JOIN wb_rule AS v
    UNION ALL
    SELECT
      -1, 'counts of the kernel', i.what, 'events', i.rows_count,
      i.events_count, 1, 0, NULL, NULL,
      'no machine can have that: a kernel bug', NULL, NULL, NULL, NULL, NULL
    FROM wb_impossible AS i
  ),
  judged AS (
    SELECT
      c.*,
      CASE
        WHEN c.unknown_why IS NOT NULL THEN NULL
        WHEN c.differs_why IS NOT NULL THEN c.differs_why
        WHEN c.other_value - c.trace_value
          > c.more_ratio * c.other_value + c.slack
          THEN c.more_why
        WHEN c.trace_value - c.other_value
          > c.less_ratio * c.other_value + c.slack
          THEN c.less_why
      END AS fault,
      CASE
        WHEN abs(c.other_value - c.trace_value)
          > v.enclosed_ratio * c.other_value
          THEN c.unsure_why
      END AS small_why
    FROM compared AS c
    CROSS JOIN wb_rule AS v
  )
SELECT
  j.source, j.what, j.unit, j.trace_value, j.other_value,
  CASE
    WHEN j.source = 'counts of the kernel' OR j.verdict = 'not comparable'
      THEN NULL
    WHEN j.trace_value = j.other_value THEN 0.0
    WHEN j.what = 'control law'
      THEN 1.0 * (j.trace_value - j.other_value) / j.trace_value
    ELSE 1.0 * (j.other_value - j.trace_value) / nullif(j.other_value, 0)
  END AS residual_ratio,
  CASE
    WHEN j.verdict IN ('not comparable', 'not recorded') THEN NULL
    WHEN j.trace_value > j.other_value THEN j.less_ratio
    ELSE coalesce(j.more_ratio, v.enclosed_ratio)
  END + 1.0 * j.slack / nullif(j.other_value, 0) AS bound_ratio,
  j.verdict, j.is_binding,
  coalesce(j.unknown_why, j.fault, j.small_why, j.about) AS why
FROM (
  SELECT
    f.*,
    CASE
      WHEN f.fault IS NOT NULL THEN 'differs'
      WHEN coalesce(f.unknown_why, f.small_why) IS NULL THEN 'agrees'
      WHEN f.trace_value + f.other_value IS NULL THEN 'not recorded'
      ELSE 'not comparable'
    END AS verdict
  FROM judged AS f
) AS j
CROSS JOIN wb_rule AS v
ORDER BY j.place, j.what;

-- @view     _check_law
-- @summary  How many balance_dirty_pages events have the rate of the law.
-- @grain    one row
-- @column   replayed_count INTEGER of them replayed
-- @column   agreed_count INTEGER of them with the rate of the law, within 1 %
-- @column   why TEXT so in words, with what explains most of those without, and
--   why most of those not replayed are not
CREATE VIEW _check_law AS
WITH
  reason AS MATERIALIZED (
    SELECT
      w.is_replayed, w.why,
      count(*) AS events_count,
      row_number() OVER (
        PARTITION BY w.is_replayed ORDER BY count(*) DESC, w.why
      ) AS place
    FROM wb_law AS w
    WHERE w.why IS NOT NULL
    GROUP BY w.is_replayed, w.why
  ),
  counted AS (
    SELECT
      c.events_count,
      c.events_count
        - coalesce(sum(CASE r.is_replayed WHEN 0 THEN r.events_count END), 0)
        AS replayed_count,
      c.events_count - coalesce(sum(r.events_count), 0) AS agreed_count,
      max(CASE WHEN r.is_replayed = 1 AND r.place = 1 THEN r.why END)
        AS broken_why,
      max(CASE WHEN r.is_replayed = 0 AND r.place = 1 THEN r.why END)
        AS missing_why
    FROM (SELECT count(*) AS events_count FROM raw_balance_dirty_pages) AS c
    LEFT JOIN reason AS r ON 1 = 1
    GROUP BY c.events_count
  )
SELECT
  c.replayed_count, c.agreed_count,
  CASE
    WHEN c.events_count = 0 THEN 'no balance_dirty_pages in the trace'
    WHEN c.replayed_count = 0 THEN c.missing_why
    ELSE c.agreed_count || ' of ' || c.replayed_count
      || ' rates are those of the law'
      || coalesce('; others: ' || c.broken_why, '')
      || CASE WHEN c.replayed_count < c.events_count
        THEN '; ' || (c.events_count - c.replayed_count) || ' not replayed: '
          || c.missing_why
        ELSE ''
      END
  END AS why
FROM counted AS c;

-- @view     _check_recorded
-- @summary  Events that were recorded and read whole: none where only a part of
--   the trace was read, whose sums are not those of the run.
-- @grain    event; order event
-- @materialize
CREATE VIEW _check_recorded AS
SELECT f.event
FROM raw_event_format AS f
LEFT JOIN raw_event_counts AS c ON c.event = f.event
WHERE coalesce(c.loaded_count, 0) = coalesce(c.count, 0)
  AND NOT EXISTS (
    SELECT 1 FROM raw_meta AS m WHERE m.key = 'partial' AND m.value = 1
  );

-- @view     _check_state
-- @summary  The kernel's counters of dirtied and written pages, at the first
--   and the last global_dirty_state.
-- @grain    counter; order what
-- @column   what TEXT nr_dirtied or nr_written
-- @column   first_value INTEGER pages since boot
-- @column   last_value INTEGER pages since boot
-- @column   open_count INTEGER pages under writeback at the last one
CREATE VIEW _check_state AS
WITH
  curve(what) AS (VALUES ('nr_dirtied'), ('nr_written'))
SELECT
  c.what,
  iif(c.what = 'nr_dirtied', f.nr_dirtied, f.nr_written) AS first_value,
  iif(c.what = 'nr_dirtied', l.nr_dirtied, l.nr_written) AS last_value,
  l.nr_writeback AS open_count
FROM curve AS c
-- Looked up, each of its own: there can be millions.
JOIN raw_global_dirty_state AS f
  ON f.seq = (SELECT min(g.seq) FROM raw_global_dirty_state AS g)
JOIN raw_global_dirty_state AS l
  ON l.seq = (SELECT max(g.seq) FROM raw_global_dirty_state AS g);

-- @view     _check_counter
-- @summary  What events count beside what counters gained that were read before
--   and after the trace.
-- @grain    counter; order place
-- @column   place INTEGER order in the table
-- @column   source TEXT where the counter is
-- @column   what TEXT counter
-- @column   unit TEXT pages, bytes or calls
-- @column   trace_value INTEGER of the trace
-- @column   other_value INTEGER of the files
-- @column   slack INTEGER that much is no difference
-- @column   is_binding INTEGER as in check
-- @column   is_outside INTEGER 1: the trace's values are not between those of
--   the files
-- @column   is_within INTEGER 1: the files were made of samples of the trace
-- @column   is_state INTEGER 1: global_dirty_state tells the counter itself
-- @column   unknown_why TEXT why they cannot be compared
-- @source   mm/vmstat.c; mm/vmscan.c do_try_to_free_pages(), pageout();
--   block/blk-core.c submit_bio()
CREATE VIEW _check_counter AS
WITH
  asked(place, what, unit, event, is_binding) AS (
    VALUES
      (0, 'nr_dirtied', 'pages', 'writeback:global_dirty_state', 1),
      (1, 'nr_written', 'pages', 'writeback:global_dirty_state', 1),
      (2, 'pgpgout', 'bytes', 'block:block_rq_complete', 0),
      (3, 'write_sectors', 'bytes', 'block:block_rq_complete', 0),
      (4, 'nr_vmscan_write', 'pages', 'vmscan:mm_vmscan_*write*', 1),
      (5, 'swap and files', 'pages', 'vmscan:mm_vmscan_*write*', 1),
      (6, 'pgscan_kswapd', 'pages', 'vmscan:mm_vmscan_lru_shrink_inactive', 1),
      (7, 'pgsteal_kswapd', 'pages', 'vmscan:mm_vmscan_lru_shrink_inactive', 1),
      -- Kernels count node, memory cgroup and proactive reclaim here or not.
      (8, 'pgscan_direct', 'pages', 'vmscan:mm_vmscan_lru_shrink_inactive', 0),
      (9, 'pgsteal_direct', 'pages', 'vmscan:mm_vmscan_lru_shrink_inactive', 0),
      (10, 'allocstall', 'calls', 'vmscan:mm_vmscan_direct_reclaim_begin', 1)
  ),
  known AS (
    SELECT
      v.counter_lag_pages
        * coalesce(max(CASE m.key WHEN 'cpus_count' THEN m.value END), 1)
        AS pages,
      coalesce(max(m.key = 'format' AND m.value = 'perfetto'), 0) AS is_within
    FROM wb_rule AS v
    LEFT JOIN raw_meta AS m ON m.key IN ('cpus_count', 'format')
  ),
  joined AS (
    SELECT
      a.place,
      CASE a.what WHEN 'write_sectors' THEN 'block stat' ELSE 'vmstat' END
        AS source,
      a.what, a.unit, a.event, a.is_binding,
      t.told_value,
      t.counted_value AS other_value,
      CASE a.unit
        WHEN 'pages' THEN l.pages
        -- Counted when submitted, and not completed yet.
        WHEN 'bytes'
          THEN u.page_bytes
            * (
              l.pages
              + coalesce((SELECT max(o.open_count) FROM _check_state AS o), 0)
            )
        ELSE r.few_calls_count
      END AS slack,
      l.is_within = 0
        AND (
          s.first_value < v.before_value - l.pages
          OR s.last_value > v.after_value + l.pages
        ) AS is_outside,
      l.is_within,
      s.what IS NOT NULL AS is_state,
      EXISTS (
        SELECT 1 FROM _check_recorded AS e WHERE e.event GLOB a.event
      ) AS is_recorded,
      r.enclosed_ratio,
      a.what = 'nr_vmscan_write' AND w.basis = 'pfn' AND w.is_complete
        AS is_folios,
      a.what GLOB 'pgs*' AND u.version BETWEEN 6001 AND 6006 AS is_silent
    FROM asked AS a
    CROSS JOIN known AS l
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS r
    CROSS JOIN reclaim_run AS w
    LEFT JOIN _check_value AS t ON t.what = a.what
    LEFT JOIN _check_state AS s ON s.what = a.what
    LEFT JOIN wb_vmstat AS v ON v.name = a.what
  )
SELECT
  j.place, j.source, j.what, j.unit,
  CASE WHEN j.is_recorded = 1 THEN j.told_value END AS trace_value,
  j.other_value, j.slack, j.is_binding, j.is_outside, j.is_within, j.is_state,
  CASE
    WHEN j.is_recorded = 0
      THEN 'the trace has not all of '
        || substr(
          replace(j.event, '*write*', 'write_folio'), instr(j.event, ':') + 1
        )
    WHEN j.told_value IS NULL THEN 'the trace does not tell it'
    WHEN j.other_value IS NULL AND j.source = 'vmstat'
      THEN 'no vmstat.before and vmstat.after with this counter'
    WHEN j.other_value IS NULL THEN 'no block.before and block.after'
    WHEN j.is_silent AND j.told_value = 0 AND j.other_value > 0
      THEN 'up to 6.6 MGLRU scans without events'
    WHEN j.is_folios
      AND j.other_value - j.told_value
        > j.enclosed_ratio * j.other_value + j.slack
      THEN 'an event does not tell how large its folio was'
  END AS unknown_why
FROM joined AS j;

-- @view     _check_bytes
-- @summary  Bytes dirtied or written and time asleep, by the trace and others.
-- @grain    source; order place
-- @column   place INTEGER order in the table
-- @column   source TEXT what the trace is compared with
-- @column   what TEXT what is compared
-- @column   unit TEXT bytes or ns
-- @column   trace_value INTEGER of the trace
-- @column   other_value INTEGER of the source
-- @column   is_more INTEGER 1: the other one has more, as a rule
-- @column   unknown_why TEXT why they cannot be compared
-- @column   differs_why TEXT what can make a difference
-- @column   about TEXT why they should be equal
-- @source   mm/page-writeback.c folio_account_dirtied(),
--   __folio_end_writeback()
CREATE VIEW _check_bytes AS
WITH
  state AS (
    SELECT
      max(CASE g.what WHEN 'nr_dirtied' THEN g.last_value - g.first_value END)
        * u.page_bytes AS dirtied,
      max(CASE g.what WHEN 'nr_written' THEN g.last_value - g.first_value END)
        * u.page_bytes AS written
    FROM wb_units AS u
    LEFT JOIN _check_state AS g
      ON 'writeback:global_dirty_state'
        IN (SELECT r.event FROM _check_recorded AS r)
  ),
  fio_job AS (
    SELECT
      sum(
        CASE WHEN f.path GLOB '$.jobs*.write."io_bytes"'
          THEN CAST(f.value AS INTEGER)
        END
      ) AS bytes,
      max(
        f.path GLOB '*options".direct' AND CAST(f.value AS INTEGER) = 1
      ) AS is_direct
    FROM raw_fio AS f
  ),
  source AS (
    SELECT
      12 AS place,
      'fio.json' AS source,
      'dirtied bytes' AS what,
      s.dirtied AS trace_value,
      f.bytes AS other_value,
      0 AS is_more,
      CASE
        WHEN f.bytes IS NULL THEN 'no fio.json with bytes written'
        WHEN f.is_direct = 1 THEN 'direct I/O dirties no pages'
      END AS unknown_why,
      NULL AS event,
      'other writers, or fio wrote pages anew that were dirty' AS differs_why,
      'each page that fio writes is dirtied once' AS about
    FROM fio_job AS f
    CROSS JOIN state AS s
    UNION ALL
    SELECT
      13, 'ls-files', 'dirtied bytes', s.dirtied,
      (SELECT sum(f.bytes) FROM raw_listed_file AS f), 0,
      CASE WHEN NOT EXISTS (SELECT 1 FROM raw_listed_file) THEN 'no ls-files'
      END, NULL,
      'files of before the run, deleted or written twice, or other writers',
      'each page of a new file is dirtied once'
    FROM state AS s
    UNION ALL
    SELECT
      14, 'system calls', 'dirtied bytes', s.dirtied,
      (SELECT sum(c.written_bytes) FROM wb_call AS c WHERE c.written_bytes > 0),
      0,
      NULL, 'syscalls:sys_exit_write',
      'calls write to pipes, to memory and directly, too; mmap, io_uring and'
        || ' calls that were not recorded (pwrite64) are not among them',
      'what write() returns becomes dirty pages'
    FROM state AS s
    UNION ALL
    SELECT
      15, 'probes', 'dirtied bytes', s.dirtied,
      (
        SELECT sum(c.dirtied_bytes)
        FROM wb_call AS c
        WHERE c.call = 'balance_dirty_pages'
      ), 0,
      NULL, 'wbscope:balance_dirty_pages_entry',
      'tasks that dirty a few pages never call balance_dirty_pages(), and what'
        || ' is dirtied after a last call is not counted',
      'each call counts what its task dirtied since the one before'
    FROM state AS s
    WHERE EXISTS (SELECT 1 FROM raw_balance_dirty_pages_entry)
    UNION ALL
    SELECT
      16, 'block events', 'written bytes', s.written,
      (
        SELECT nullif(v.told_value, 0)
        FROM _check_value AS v
        WHERE v.what = 'pgpgout'
      ), 1,
      NULL, 'block:block_rq_complete',
      CASE WHEN EXISTS (SELECT 1 FROM write_errors)
        THEN 'writes failed, and the counters count them as written'
        ELSE 'counters told for a part of the time, journals, direct I/O, RAID,'
          || ' zram'
      END,
      'pages whose writeback ended are on a device; journals come on top'
    FROM state AS s
    UNION ALL
    SELECT
      22, 'stalls', 'state D', sum(c.blocked_ns), sum(c.waits_ns), 1,
      CASE count(*) WHEN 0 THEN 'no sleep of 1 ms or more is told' END, NULL,
      'sleeps that are in no wait, or waits in which tasks run, as in reclaim',
      'each sleep of 1 ms or more is in one wait; calls and reclaim also run'
    FROM blocked_coverage AS c
  )
SELECT
  s.place, s.source, s.what,
  CASE s.source WHEN 'stalls' THEN 'ns' ELSE 'bytes' END AS unit,
  s.trace_value, s.other_value, s.is_more,
  CASE
    WHEN s.unknown_why IS NOT NULL THEN s.unknown_why
    WHEN s.event IS NOT NULL
      AND s.event NOT IN (SELECT r.event FROM _check_recorded AS r)
      THEN 'the trace has not all of '
        || substr(s.event, instr(s.event, ':') + 1)
    WHEN s.trace_value IS NULL
      THEN 'the trace has not all of global_dirty_state'
    WHEN s.other_value IS NULL THEN 'none of them wrote'
    WHEN min(s.trace_value, s.other_value) + v.counter_lag_pages * u.page_bytes
      < v.most_ratio * max(s.trace_value, s.other_value)
      THEN 'one is more than twice the other: ' || s.differs_why
  END AS unknown_why,
  s.differs_why, s.about
FROM source AS s
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u;

-- @view     _check_sleep
-- @summary  Pauses that tasks were told, and how long they slept then.
-- @grain    one row
-- @column   pauses_count INTEGER pauses
-- @column   pause_ns INTEGER their sum; NULL = not recorded
-- @column   slept_ns INTEGER sum of the first sleep in state D after each
-- @column   unknown_why TEXT why they cannot be compared
-- @source   mm/page-writeback.c balance_dirty_pages(): sleeps are
--   TASK_KILLABLE, which is state D
CREATE VIEW _check_sleep AS
WITH
  steps AS (
    SELECT r.tid, r.seq, r.ts, r.pause, NULL AS slept_ns
    FROM raw_balance_dirty_pages AS r
    WHERE EXISTS (SELECT 1 FROM raw_sched_switch)
    UNION ALL
    SELECT s.tid, s.seq, s.ts, NULL, s.end_ts - s.ts
    FROM wb_wait_end AS s
  ),
  followed AS (
    SELECT
      s.pause, s.ts,
      lead(s.ts) OVER task AS next_ts,
      lead(s.slept_ns) OVER task AS next_slept_ns
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  summed AS (
    SELECT
      count(*) AS pauses_count,
      sum(f.pause) * u.ms_ns AS pause_ns,
      coalesce(
        sum(
          CASE WHEN f.next_ts - f.ts <= v.run_slack_ns THEN f.next_slept_ns END
        ),
        0
      ) AS slept_ns
    FROM followed AS f
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
    WHERE f.pause > 0
    GROUP BY u.ms_ns
  )
SELECT
  s.pauses_count,
  CASE WHEN r.events_count = 2 THEN s.pause_ns END AS pause_ns,
  CASE WHEN r.events_count = 2 THEN s.slept_ns END AS slept_ns,
  CASE
    WHEN r.events_count < 2
      THEN 'the trace has not all of balance_dirty_pages and sched_switch'
    WHEN s.pause_ns IS NULL THEN 'no task was told to pause'
  END AS unknown_why
FROM (
  SELECT count(*) AS events_count
  FROM _check_recorded AS e
  WHERE e.event IN ('writeback:balance_dirty_pages', 'sched:sched_switch')
) AS r
LEFT JOIN summed AS s ON 1;

-- @view     _check_trace
-- @summary  Whether the trace is whole, also by what its events tell of others
--   (throttle_closure).
-- @grain    what; order place
-- @column   place INTEGER order in the table
-- @column   source TEXT who tells
-- @column   what TEXT events kept or read, throttle events, pauses
-- @column   trace_value INTEGER events in the trace
-- @column   other_value INTEGER events that should be there; NULL = not known
-- @column   differs_why TEXT what is missing; NULL = nothing
-- @column   about TEXT why it is whole
CREATE VIEW _check_trace AS
WITH
  held AS (
    SELECT coalesce(sum(c.count), 0) AS events_count
    FROM raw_event_counts AS c
  ),
  -- Places and counts, of the ring buffer and of text read from it.
  lost AS (
    SELECT
      count(*) AS places_count,
      count(*) - count(l.count) AS unknown_count,
      coalesce(sum(l.count), 0) + coalesce(
        (
          SELECT max(i.value)
          FROM raw_ingest_stats AS i
          WHERE i.name = 'text_overwritten'
        ),
        0
      ) AS lost_count
    FROM raw_lost_events AS l
  ),
  damage AS (
    SELECT 1 AS place, 'the trace is damaged and was read only in part' AS why
    FROM raw_meta AS m
    WHERE m.key = 'damaged' AND m.value = 1
    UNION ALL
    SELECT 2, 'the recording ended before its time (' || m.value || ')'
    FROM raw_meta AS m
    WHERE m.key = 'record_ended' AND m.value <> 'complete'
    UNION ALL
    SELECT 3, i.name || ' is not 0: data of the trace is missing'
    FROM raw_ingest_stats AS i
    WHERE not_read!(i) AND i.name <> 'text_overwritten'
  ),
  closure AS (
    SELECT
      'kernel' AS source,
      'throttle events' AS what,
      sum(t.looks_count) AS events_count,
      sum(t.missing_count) AS wrong_count,
      'balance_dirty_pages events are missing' AS why,
      'above free run one follows each look at the dirty pages' AS about
    FROM throttle_closure AS t
    UNION ALL
    SELECT
      'clock', 'pauses', sum(t.pauses_count), sum(t.early_count),
      'tasks fire their next event before these pauses are over',
      'the next event of each task comes after its pause'
    FROM throttle_closure AS t
  )
SELECT
  21 AS place,
  c.source, c.what,
  c.events_count - c.wrong_count AS trace_value,
  c.events_count AS other_value,
  CASE WHEN c.wrong_count > v.same_ratio * c.events_count THEN c.why END
    AS differs_why,
  c.about
FROM closure AS c
CROSS JOIN wb_rule AS v
WHERE c.events_count >= v.few_calls_count
UNION ALL
SELECT
  18, 'ring buffer', 'events kept', h.events_count,
  CASE WHEN l.unknown_count = 0 THEN h.events_count + l.lost_count END,
  CASE
    WHEN l.unknown_count > 0
      THEN 'the ring buffer overran, and how many events are lost is not known'
    WHEN l.lost_count > 0 THEN 'events were overwritten before they were read'
    WHEN l.places_count > 0 THEN 'the ring buffer overran'
  END,
  'no event was overwritten'
FROM held AS h
CROSS JOIN lost AS l
UNION ALL
SELECT
  19, 'trace file', 'events read', h.events_count,
  CASE WHEN d.why IS NULL THEN h.events_count END, d.why, 'read to its end'
FROM held AS h
LEFT JOIN (SELECT a.why FROM damage AS a ORDER BY a.place, a.why LIMIT 1) AS d;

-- @view     _check_disk
-- @summary  What disks wrote by their counters, and by their requests: of disks
--   that have requests and are in the files of before and after the trace. Bios
--   of zram, pmem, device mapper and md are none.
-- @grain    disk; order disk
-- @column   disk TEXT its name, such as vda
-- @column   written_bytes INTEGER by its counters
-- @column   done_bytes INTEGER completed; NULL = the files have no numbers of
--   devices
CREATE VIEW _check_disk AS
WITH
  gained AS (
    SELECT
      s.object AS disk,
      max(CASE s.name WHEN 'dev_major' THEN s.value END) || ':'
        || max(CASE s.name WHEN 'dev_minor' THEN s.value END) AS device,
      (
        (
          max(iif(s.name || s.sample = 'write_sectorsafter', s.value, NULL))
          - max(iif(s.name || s.sample = 'write_sectorsbefore', s.value, NULL))
          + u.long_half & u.long_mask
        ) - u.long_half
      ) * u.sector_bytes AS written_bytes
    FROM raw_sample AS s
    CROSS JOIN wb_units AS u
    WHERE s.source = 'block'
      AND s.name IN ('dev_major', 'dev_minor', 'write_sectors')
    GROUP BY s.object, u.sector_bytes
  ),
  done AS (
    SELECT
      device!(c) AS device,
      sum(CASE c.op WHEN 'write' THEN c.nr_sector ELSE 0 END) * u.sector_bytes
        AS bytes
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
    WHERE device!(c) IN (SELECT g.device FROM gained AS g)
    GROUP BY 1
  )
SELECT g.disk, g.written_bytes, d.bytes AS done_bytes
FROM gained AS g
LEFT JOIN done AS d ON d.device = g.device
WHERE g.written_bytes >= 0
  AND (d.device IS NOT NULL OR g.device IS NULL)
  AND (d.device IS NOT NULL OR g.disk NOT GLOB 'dm-*')
  AND (d.device IS NOT NULL OR g.disk NOT GLOB 'md[0-9]*');

-- @view     _check_value
-- @summary  What events tell of counters of vmstat and of disks, and what the
--   files count, under the same names.
-- @grain    counter; order what
-- @column   what TEXT counter, as in vmstat
-- @column   told_value INTEGER by events
-- @column   counted_value INTEGER by the files
CREATE VIEW _check_value AS
WITH
  wanted(kind) AS (VALUES ('pgscan'), ('pgsteal'), ('swap and files')),
  completed AS (
    SELECT coalesce(sum(c.nr_sector * u.sector_bytes), 0) AS bytes
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
    WHERE c.op = 'write'
  ),
  -- What zswap wrote out later is in pswpout once more.
  swapped AS (
    SELECT
      sum(CASE v.name WHEN 'zswpwb' THEN -1 ELSE 1 END * v.gained_count)
        AS pages
    FROM wb_vmstat AS v
    WHERE v.name IN ('pswpout', 'zswpout', 'zswpwb', 'swpout_zero')
  ),
  value AS (
    SELECT
      s.what,
      s.last_value - s.first_value AS told,
      NULL AS counted
    FROM _check_state AS s
    UNION ALL
    SELECT 'pgpgout', c.bytes, NULL FROM completed AS c
    UNION ALL
    SELECT
      'write_sectors',
      coalesce(sum(k.done_bytes), (SELECT c.bytes FROM completed AS c)),
      sum(k.written_bytes)
    FROM _check_disk AS k
    UNION ALL
    SELECT 'nr_vmscan_write', coalesce(w.pages_count, w.events_count), NULL
    FROM reclaim_run AS w
    UNION ALL
    -- Reclaim is read once: mmtests_vmstat says why.
    SELECT
      CASE
        WHEN n.kind = 'swap and files' THEN n.kind
        WHEN r.reclaimer = 'memcg' AND o.version >= 6019
          THEN n.kind || '_direct'
        ELSE n.kind || '_' || r.reclaimer
      END,
      CASE n.kind
        WHEN 'pgscan' THEN sum(r.scanned_count)
        WHEN 'pgsteal' THEN sum(r.reclaimed_count)
        ELSE sum(r.file_writes_count) + (SELECT w.pages FROM swapped AS w)
      END,
      -- khugepaged reclaims directly, and has counters of its own from 6.12 on.
      sum(
        CASE n.kind
          WHEN 'pgscan' THEN r.vmstat_scanned_count
          WHEN 'pgsteal' THEN r.vmstat_reclaimed_count
        END
          + CASE r.reclaimer WHEN 'direct' THEN coalesce(k.gained_count, 0)
            ELSE 0
          END
      )
    FROM reclaim_efficiency AS r
    CROSS JOIN wb_units AS o
    CROSS JOIN wanted AS n
    LEFT JOIN wb_vmstat AS k ON k.name = n.kind || '_khugepaged'
    GROUP BY 1
    UNION ALL
    SELECT 'allocstall', count(*), NULL FROM raw_mm_vmscan_direct_reclaim_begin
    UNION ALL
    SELECT
      CASE WHEN v.name GLOB 'allocstall*' THEN 'allocstall' ELSE v.name END,
      NULL,
      sum(v.gained_count * CASE v.name WHEN 'pgpgout' THEN u.kib_bytes ELSE 1
        END)
    FROM wb_vmstat AS v
    CROSS JOIN wb_units AS u
    WHERE v.name IN ('nr_dirtied', 'nr_written', 'nr_vmscan_write', 'pgpgout')
      OR v.name GLOB 'allocstall*'
    GROUP BY 1
    UNION ALL
    SELECT 'swap and files', NULL, v.gained_count
    FROM wb_vmstat AS v
    WHERE v.name = 'nr_vmscan_write'
  )
SELECT v.what, max(v.told) AS told_value, max(v.counted) AS counted_value
FROM value AS v
GROUP BY v.what;
