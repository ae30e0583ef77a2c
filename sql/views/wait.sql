-- SPDX-License-Identifier: Apache-2.0
-- Waits of tasks as the events tell them.

-- @view     wb_wait
-- @summary  Waits of tasks as the events tell them, before those inside others
--   are taken out. Waits of one rank do not overlap within a task: the one that
--   began first keeps the time, so the fsync of a file system is part of the
--   system call around it. No wait outlives its task.
-- @grain    wait; order wait_id
-- @optional sched:sched_switch, sched:sched_process_exit
-- @column   wait_id INTEGER of wb_wait; grows with ts within a rank
-- @column   seq INTEGER of the event, or of the sched_switch, that it is from
-- @column   ts INTEGER ns, start
-- @column   end_ts INTEGER ns, end; NULL where no event tells it
-- @column   tid INTEGER thread
-- @column   comm TEXT its name when the event fired
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   kind TEXT throttle, direct reclaim, memcg reclaim, reclaim
--   throttle, folio wait, journal, block queue, server, fsync, sync, write or
--   blocked outside throttling
-- @column   rank INTEGER 4: one sleep; 3: reclaim; 2: own request to a disk or
--   to the server of FUSE; 1: system call; 0: none of these. A wait of higher
--   rank is inside those of lower ranks
-- @column   what TEXT event or call that it is from
-- @column   basis TEXT sched: between two sched_switch; events: between two
--   events; reported: as long as its event says; measured, paused, intended:
--   see wb_throttle
-- @column   cut TEXT start or end: under way when the trace began or ended;
--   exit: the task exited in it; lost: an event is missing; NULL = whole
-- @column   device TEXT major:minor or name of the bdi; NULL = not told
-- @column   ref_seq INTEGER of the event that says why; the request's for block
--   queue
-- @column   reason INTEGER of mm_vmscan_throttled; a bit mask
-- @source   docs/stalls.md
-- @materialize
-- @cost     260
CREATE VIEW wb_wait AS
WITH
  spans AS (
    SELECT
      t.seq,
      t.sleep_ts AS ts,
      t.sleep_ts + t.slept_ns AS end_ts,
      t.tid,
      'throttle' AS kind,
      4 AS rank,
      'balance_dirty_pages' AS what,
      t.slept_basis AS basis,
      CASE WHEN t.sleep_ts + t.slept_ns >= b.last_ts THEN 'end' END AS cut,
      t.bdi AS device,
      t.seq AS ref_seq,
      NULL AS reason,
      t.ts AS event_ts
    FROM wb_throttle_pause AS t
    CROSS JOIN wb_bounds AS b
    WHERE t.slept_ns > 0
    UNION ALL
    SELECT
      w.seq, w.ts, w.end_ts, w.tid, w.kind, w.rank, w.what, w.basis, w.cut,
      w.device, w.ref_seq, w.reason, w.event_ts
    FROM _wait_call AS w
    UNION ALL
    SELECT
      e.seq, e.ts, e.end_ts, e.tid, e.kind, e.rank, e.what, e.basis, e.cut,
      e.device, e.ref_seq, e.reason, e.event_ts
    FROM _wait_told AS e
    UNION ALL
    SELECT
      o.seq, o.ts, o.end_ts, o.tid,
      'blocked outside throttling',
      0, o.what, o.basis,
      CASE WHEN o.end_ts >= b.last_ts THEN 'end' END,
      o.bdi, o.seq, NULL, o.ts
    FROM _wait_outside AS o
    CROSS JOIN wb_bounds AS b
  ),
  lives AS (
    SELECT s.*, NULL AS exit_ts
    FROM spans AS s
    UNION ALL
    SELECT
      x.seq, x.ts, NULL, x.tid, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      x.ts, x.ts
    FROM raw_sched_process_exit AS x
  ),
  -- Backwards: the least so far is the next one.
  ended AS (
    SELECT
      l.*,
      min(l.exit_ts) OVER task AS next_exit_ts,
      lag(l.event_ts) OVER task AS next_event_ts,
      lead(l.event_ts) OVER task AS prev_event_ts
    FROM lives AS l
    WINDOW task AS (
      PARTITION BY l.tid ORDER BY l.seq DESC ROWS UNBOUNDED PRECEDING
    )
  ),
  known AS (
    SELECT
      e.seq,
      -- What is only estimated, or reported in jiffies, does not reach over
      -- another event of the task: it ran there.
      CASE
        WHEN e.basis = 'reported' AND e.ts < e.prev_event_ts
          THEN e.prev_event_ts
        WHEN e.ts < b.first_ts THEN b.first_ts
        ELSE e.ts
      END AS ts,
      CASE
        WHEN e.end_ts > e.next_exit_ts THEN e.next_exit_ts
        WHEN e.basis IN ('intended', 'paused') AND e.end_ts > e.next_event_ts
          THEN e.next_event_ts
        WHEN e.cut = 'lost' THEN NULL
        WHEN e.end_ts > b.last_ts THEN b.last_ts
        ELSE e.end_ts
      END AS end_ts,
      e.tid,
      coalesce(t.comm, 'tid ' || e.tid) AS comm,
      t.task_id, e.kind, e.rank, e.what,
      CASE WHEN e.cut = 'lost' THEN NULL ELSE e.basis END AS basis,
      CASE WHEN e.end_ts > e.next_exit_ts THEN 'exit' ELSE e.cut END AS cut,
      e.device, e.ref_seq, e.reason
    FROM ended AS e
    CROSS JOIN wb_bounds AS b
    LEFT JOIN wb_task AS t ON task_of!(t, e)
    WHERE e.kind IS NOT NULL
  ),
  reached AS (
    SELECT
      k.*,
      max(k.end_ts) OVER (
        PARTITION BY k.tid, k.rank ORDER BY k.ts, k.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ts
    FROM known AS k
  ),
  apart AS (
    SELECT
      r.*,
      CASE
        WHEN r.end_ts IS NOT NULL AND r.reached_ts > r.ts THEN r.reached_ts
        ELSE r.ts
      END AS own_ts
    FROM reached AS r
    WHERE r.end_ts IS NULL
      OR (r.end_ts > r.ts AND (r.reached_ts IS NULL OR r.end_ts > r.reached_ts))
  )
SELECT
  a.seq * 8 + a.rank AS wait_id,
  a.seq,
  a.own_ts AS ts,
  a.end_ts, a.tid, a.comm, a.task_id, a.kind, a.rank, a.what, a.basis, a.cut,
  -- The file system's fsync names the device of the system call around it.
  CASE
    WHEN a.device IS NULL AND a.rank = 1
      THEN (
        SELECT f.device
        FROM _wait_fsync AS f
        WHERE f.tid = a.tid AND f.ts >= a.ts AND f.ts < a.end_ts
        ORDER BY f.ts
        LIMIT 1
      )
    ELSE a.device
  END AS device,
  a.ref_seq, a.reason
FROM apart AS a;

-- @view     _wait_fsync
-- @summary  The fsyncs of file systems that name their device, for looking up
--   the one in a system call.
-- @grain    fsync; order tid, ts
-- @column   ts INTEGER ns, start
-- @index    tid ts
-- @materialize
CREATE VIEW _wait_fsync AS
SELECT
  c.tid,
  CASE c.cut WHEN 'start' THEN b.first_ts ELSE c.ts END AS ts,
  c.device
FROM wb_call AS c
CROSS JOIN wb_bounds AS b
WHERE c.call IN ('ext4_sync_file', 'nfs_fsync');

-- @view     _wait_sleep
-- @summary  Uninterruptible sleeps that sched_switch measured, with the events
--   of the same task around them that tell what it slept for.
-- @grain    sleep that an event explains; order seq
-- @column   seq INTEGER of the sched_switch that took the task off its CPU
-- @column   ts INTEGER ns, when the task left the CPU
-- @column   end_ts INTEGER ns, when it ran again
-- @column   tid INTEGER thread
-- @column   before_seq INTEGER of the event that fired before a sleep,
--   folio_wait_writeback or xfs_log_cil_wait, and that this one followed at
--   once
-- @column   after_seq INTEGER of the event that fired after this sleep and
--   reports it
-- @column   request_seq INTEGER of wb_wait_request: the last request for which
--   somebody waits that the task had submitted
-- @column   call_seq INTEGER of wb_call: the write it slept in
-- @source   mm/filemap.c folio_wait_bit_common(); mm/vmscan.c
--   reclaim_throttle(); fs/jbd2/transaction.c do_get_write_access()
-- @materialize
CREATE VIEW _wait_sleep AS
WITH
  steps AS (
    SELECT
      s.tid, s.seq, s.ts,
      'sleep' AS step,
      s.end_ts, s.ran_ts
    FROM wb_wait_end AS s
    UNION ALL
    SELECT f.tid, f.seq, f.ts, 'before', NULL, NULL
    FROM raw_folio_wait_writeback AS f
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'before', NULL, NULL
    FROM raw_xfs_log_cil_wait AS x
    UNION ALL
    SELECT t.tid, t.seq, t.ts, 'after', NULL, NULL
    FROM raw_mm_vmscan_throttled AS t
    UNION ALL
    SELECT w.tid, w.seq, w.ts, 'after', NULL, NULL
    FROM raw_writeback_congestion_wait AS w
    UNION ALL
    SELECT w.tid, w.seq, w.ts, 'after', NULL, NULL
    FROM raw_writeback_wait_iff_congested AS w
    UNION ALL
    SELECT j.tid, j.seq, j.ts, 'after', NULL, NULL
    FROM raw_jbd2_lock_buffer_stall AS j
    UNION ALL
    SELECT r.tid, r.seq, r.ts, 'request', NULL, NULL
    FROM wb_wait_request AS r
    WHERE r.is_sync = 1
  ),
  around AS (
    SELECT
      s.*,
      max(CASE WHEN s.step = 'before' THEN s.seq END) OVER task AS before_seq,
      max(CASE WHEN s.step = 'before' THEN s.ts END) OVER task AS before_ts,
      max(CASE WHEN s.step = 'request' THEN s.seq END) OVER task
        AS request_seq,
      max(CASE WHEN s.step = 'sleep' THEN s.seq END) OVER earlier
        AS last_sleep_seq,
      max(CASE WHEN s.step = 'sleep' THEN s.end_ts END) OVER earlier
        AS last_sleep_end_ts
    FROM steps AS s
    WINDOW
      task AS (PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING),
      earlier AS (
        PARTITION BY s.tid ORDER BY s.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  -- The sleep that an event reports is the last one before it.
  reported AS (
    SELECT a.last_sleep_seq AS sleep_seq, min(a.seq) AS after_seq
    FROM around AS a
    CROSS JOIN wb_rule AS r
    WHERE a.step = 'after'
      AND a.ts - a.last_sleep_end_ts <= r.run_slack_ns
    GROUP BY a.last_sleep_seq
  ),
  told AS (
    SELECT
      a.seq, a.ts, a.end_ts, a.tid,
      -- The task runs on from the event to the sleep, but for preemption.
      CASE
        WHEN a.before_seq > coalesce(a.last_sleep_seq, 0)
          AND a.ts
            - CASE
              WHEN a.ran_ts > a.before_ts THEN a.ran_ts
              ELSE a.before_ts
            END
            <= r.run_slack_ns
          THEN a.before_seq
      END AS before_seq,
      w.after_seq, a.request_seq,
      (
        SELECT max(c.seq)
        FROM wb_call AS c
        WHERE c.tid = a.tid AND c.is_write = 2 AND c.seq < a.seq
      ) AS last_call_seq
    FROM around AS a
    CROSS JOIN wb_rule AS r
    LEFT JOIN reported AS w ON w.sleep_seq = a.seq
    WHERE a.step = 'sleep'
  )
SELECT
  t.seq, t.ts, t.end_ts, t.tid, t.before_seq, t.after_seq, t.request_seq,
  c.seq AS call_seq
FROM told AS t
LEFT JOIN wb_call AS c
  ON c.tid = t.tid AND c.is_write = 2
  AND c.seq = t.last_call_seq AND c.end_ts > t.ts
WHERE t.before_seq IS NOT NULL
  OR t.after_seq IS NOT NULL
  OR t.request_seq IS NOT NULL
  OR c.seq IS NOT NULL;

-- @view     _wait_pair
-- @summary  Spans of a task that have an event at either end and are no system
--   calls: reclaim, sleeps for log space, and the waits for the flusher of
--   February 2011.
-- @grain    span; order seq
-- @column   seq INTEGER of the event that begins it, or ends it where no
--   beginning was recorded
-- @column   ts INTEGER ns, start
-- @column   end_ts INTEGER ns, end; for cut = lost until when it can have
--   lasted at most, NULL where that is not known
-- @column   tid INTEGER thread
-- @column   what TEXT name of the pair of events
-- @column   device TEXT major:minor or name of the bdi, where the events tell
-- @column   cut TEXT start or end: it was under way when the trace began or
--   ended; lost: the event at one end is missing; NULL = whole
-- @source   include/trace/events/vmscan.h; fs/xfs/xfs_trace.h; patch of
--   2011-02-04
-- @materialize
-- @cost     24
CREATE VIEW _wait_pair AS
WITH
  steps AS (
    SELECT s.*, NULL AS device
    FROM span!(
      raw_mm_vmscan_direct_reclaim_begin,
      raw_mm_vmscan_direct_reclaim_end,
      'direct_reclaim'
    ) AS s
    UNION ALL
    SELECT s.*, NULL
    FROM span!(
      raw_mm_vmscan_memcg_reclaim_begin,
      raw_mm_vmscan_memcg_reclaim_end,
      'memcg_reclaim'
    ) AS s
    UNION ALL
    SELECT s.*, NULL
    FROM span!(
      raw_mm_vmscan_memcg_softlimit_reclaim_begin,
      raw_mm_vmscan_memcg_softlimit_reclaim_end,
      'memcg_softlimit_reclaim'
    ) AS s
    UNION ALL
    SELECT s.*, NULL
    FROM span!(
      raw_mm_vmscan_node_reclaim_begin,
      raw_mm_vmscan_node_reclaim_end,
      'node_reclaim'
    ) AS s
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'balance_dirty_pages_waiting', 0, e.bdi
    FROM raw_writeback_balance_dirty_pages_waiting AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'balance_dirty_pages_waiting', 1, e.bdi
    FROM raw_writeback_balance_dirty_pages_woken AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'xfs_log_grant', 0, device!(e)
    FROM raw_xfs_log_grant_sleep AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'xfs_log_grant', 1, device!(e)
    FROM raw_xfs_log_grant_wake AS e
  ),
  -- Spans of one kind never nest within a task.
  paired AS (
    SELECT
      s.*,
      lead(s.ts) OVER task AS next_ts,
      lead(s.is_end) OVER task AS next_is_end,
      lag(s.is_end) OVER task AS prev_is_end
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid, s.what ORDER BY s.seq)
  ),
  lost AS (
    SELECT min(l.ts) AS first_ts, max(l.ts) AS last_ts
    FROM raw_lost_events AS l
  )
SELECT
  p.seq,
  CASE
    WHEN p.is_end = 1 AND p.prev_is_end IS NULL
      AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN b.first_ts
    ELSE p.ts
  END AS ts,
  CASE
    WHEN p.is_end = 0 AND p.next_ts IS NOT NULL THEN p.next_ts
    WHEN p.is_end = 0 AND (l.last_ts IS NULL OR l.last_ts < p.ts)
      THEN b.last_ts
    WHEN p.is_end = 1 AND p.prev_is_end IS NULL
      AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN p.ts
  END AS end_ts,
  p.tid, p.what,
  coalesce(n.bdi, p.device) AS device,
  CASE
    WHEN p.is_end = 0 AND p.next_is_end = 1 THEN NULL
    WHEN p.is_end = 0 AND p.next_ts IS NULL
      AND (l.last_ts IS NULL OR l.last_ts < p.ts) THEN 'end'
    WHEN p.is_end = 1 AND p.prev_is_end IS NULL
      AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN 'start'
    ELSE 'lost'
  END AS cut
FROM paired AS p
CROSS JOIN wb_bounds AS b
CROSS JOIN lost AS l
-- XFS names a partition.
LEFT JOIN wb_device AS n
  ON instr(n.partitions, ' ' || p.device || ' ') > 0
WHERE p.is_end = 0 OR p.prev_is_end IS NULL OR p.prev_is_end = 1;

-- @view     _wait_call
-- @summary  Calls and requests that wait; of calls that write the sleeps,
--   without sched_switch the calls.
-- @grain    wait; order seq
-- @column   ts INTEGER ns, start of the wait
-- @column   end_ts INTEGER ns, end of the wait
-- @column   kind TEXT as in wb_wait
-- @column   rank INTEGER as in wb_wait
-- @column   what TEXT as in wb_wait
-- @column   basis TEXT as in wb_wait
-- @column   cut TEXT as in wb_wait
-- @column   device TEXT as in wb_wait
-- @column   ref_seq INTEGER as in wb_wait
-- @column   reason INTEGER as in wb_wait
-- @column   event_ts INTEGER ns, when its event fired
-- @source   fs/fuse/dev.c request_wait_answer(), flush_bg_queue()
CREATE VIEW _wait_call AS
WITH
  -- A task whose throttling names one bdi only writes to that.
  writes_to AS (
    SELECT d.tid, min(d.bdi) AS bdi
    FROM raw_balance_dirty_pages AS d
    WHERE d.tid IN (SELECT c.tid FROM wb_call AS c WHERE c.is_write > 0)
      AND EXISTS (SELECT 1 FROM wb_call AS c WHERE c.is_write > 0)
    GROUP BY d.tid
    HAVING min(d.bdi) = max(d.bdi)
  )
-- It is the sleeps of a write that are waits; the rest of it copies data.
SELECT
  c.seq,
  CASE c.cut WHEN 'start' THEN b.first_ts ELSE c.ts END AS ts,
  c.end_ts, c.tid,
  'write' AS kind,
  1 AS rank,
  c.call AS what,
  'events' AS basis,
  c.cut,
  o.bdi AS device,
  c.seq AS ref_seq,
  NULL AS reason,
  c.ts AS event_ts
FROM wb_call AS c
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_rule AS r
LEFT JOIN writes_to AS o ON o.tid = c.tid
LEFT JOIN _wait_watched AS w ON w.tid = c.tid
WHERE c.is_write > 0
  AND w.tid IS NULL
  AND c.end_ts - CASE c.cut WHEN 'start' THEN b.first_ts ELSE c.ts END
    >= r.call_least_ns
UNION ALL
SELECT
  s.seq, s.ts, s.end_ts, s.tid,
  'write',
  1, c.call,
  'sched',
  CASE WHEN s.end_ts >= b.last_ts THEN 'end' END,
  o.bdi, c.seq, NULL, s.ts
FROM _wait_sleep AS s
CROSS JOIN wb_bounds AS b
JOIN wb_call AS c ON c.tid = s.tid AND c.is_write = 2
  AND c.seq = s.call_seq
LEFT JOIN writes_to AS o ON o.tid = s.tid
UNION ALL
SELECT
  c.seq,
  CASE c.cut WHEN 'start' THEN b.first_ts ELSE c.ts END,
  c.end_ts, c.tid,
  CASE
    WHEN c.call IN ('sync', 'syncfs') THEN 'sync'
    WHEN c.call = 'nfs_wb_all' THEN 'server'
    ELSE 'fsync'
  END,
  1, c.call,
  'events',
  c.cut, c.device, c.seq, NULL, c.ts
FROM wb_call AS c
CROSS JOIN wb_bounds AS b
WHERE c.is_sync IS NOT NULL
UNION ALL
SELECT
  p.seq, p.ts, p.end_ts, p.tid,
  CASE
    WHEN p.what = 'balance_dirty_pages_waiting' THEN 'throttle'
    WHEN p.what LIKE 'memcg%' THEN 'memcg reclaim'
    WHEN p.what = 'xfs_log_grant' THEN 'journal'
    ELSE 'direct reclaim'
  END,
  CASE WHEN p.what LIKE '%reclaim' THEN 3 ELSE 4 END,
  p.what,
  'events',
  p.cut, p.device, p.seq, NULL,
  CASE WHEN p.cut = 'start' THEN p.end_ts ELSE p.ts END
FROM _wait_pair AS p
UNION ALL
-- Block requests that the task itself issued.
SELECT
  s.seq, s.ts,
  min(q.end_ts, s.end_ts),
  s.tid,
  'block queue',
  2,
  'block_rq ' || q.rwbs,
  'sched',
  CASE WHEN s.end_ts >= b.last_ts AND q.end_ts >= b.last_ts THEN 'end' END,
  q.device, q.seq, NULL, s.ts
FROM _wait_sleep AS s
CROSS JOIN wb_bounds AS b
JOIN wb_wait_request AS q ON q.seq = s.request_seq
WHERE q.end_ts > s.ts
UNION ALL
SELECT
  q.seq, q.ts, q.end_ts, q.tid,
  'block queue',
  2,
  'block_rq ' || q.rwbs,
  'events',
  CASE WHEN q.end_ts >= b.last_ts THEN 'end' END,
  q.device, q.seq, NULL, q.ts
FROM wb_wait_request AS q
CROSS JOIN wb_bounds AS b
LEFT JOIN _wait_watched AS w ON w.tid = q.tid
LEFT JOIN wb_task AS t ON task_of!(t, q)
-- Idle CPUs and workers issue requests of others.
WHERE q.is_sync = 1
  AND w.tid IS NULL
  AND q.tid <> 0
  AND (t.comm IS NULL OR t.comm NOT GLOB 'kworker/*')
UNION ALL
-- Requests to the server of FUSE that the task waits for: not RELEASE, nor
-- those of kworkers, nor what the server itself puts where it reads, which
-- others had queued.
SELECT
  v.seq, v.ts, coalesce(v.end_ts, b.last_ts), v.tid,
  'server',
  2,
  'fuse ' || v.call,
  'events',
  CASE WHEN v.end_ts IS NULL THEN 'end' END,
  v.device, v.seq, NULL, v.ts
FROM wb_call AS v
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_task AS t ON task_of!(t, v)
WHERE v.protocol = 'fuse'
  AND v.call NOT IN ('RELEASE', 'INIT')
  AND v.tid NOT IN (
    SELECT a.answer_tid
    FROM wb_call AS a
    WHERE a.protocol = 'fuse' AND a.answer_tid IS NOT NULL
  )
  AND (t.comm IS NULL OR t.comm NOT GLOB 'kworker/*')
  AND (v.end_ts IS NOT NULL OR NOT EXISTS (SELECT 1 FROM raw_lost_events));

-- @view     _wait_told
-- @summary  Waits that an event reports when they are over, or announces.
-- @grain    wait; order seq
-- @column   end_ts INTEGER ns, end of the wait
-- @column   kind TEXT as in wb_wait
-- @column   rank INTEGER as in wb_wait
-- @column   what TEXT as in wb_wait
-- @column   basis TEXT as in wb_wait
-- @column   cut TEXT as in wb_wait
-- @column   device TEXT as in wb_wait
-- @column   ref_seq INTEGER as in wb_wait
-- @column   reason INTEGER as in wb_wait
-- @column   event_ts INTEGER ns, when its event fired
CREATE VIEW _wait_told AS
WITH
  reports AS (
    SELECT
      t.seq, t.ts, t.tid,
      'reclaim throttle' AS kind,
      'mm_vmscan_throttled' AS what,
      t.usec_delayed * u.us_ns AS told_ns,
      NULL AS device,
      t.reason
    FROM raw_mm_vmscan_throttled AS t
    CROSS JOIN wb_units AS u
    UNION ALL
    SELECT w.seq, w.ts, w.tid, 'reclaim throttle', 'writeback_congestion_wait',
      w.usec_delayed * u.us_ns, NULL, NULL
    FROM raw_writeback_congestion_wait AS w
    CROSS JOIN wb_units AS u
    UNION ALL
    SELECT w.seq, w.ts, w.tid, 'reclaim throttle',
      'writeback_wait_iff_congested',
      w.usec_delayed * u.us_ns, NULL, NULL
    FROM raw_writeback_wait_iff_congested AS w
    CROSS JOIN wb_units AS u
    UNION ALL
    SELECT j.seq, j.ts, j.tid, 'journal', 'jbd2_lock_buffer_stall',
      j.stall_ms * u.ms_ns, coalesce(n.bdi, device!(j)), NULL
    FROM raw_jbd2_lock_buffer_stall AS j
    CROSS JOIN wb_units AS u
    LEFT JOIN wb_device AS n
      ON instr(n.partitions, ' ' || device!(j) || ' ') > 0
  ),
  -- Events before a sleep whose end no event of their own tells.
  announced AS (
    SELECT
      f.seq, f.ts, f.tid,
      'folio wait' AS kind,
      'folio_wait_writeback' AS what,
      f.name AS device
    FROM raw_folio_wait_writeback AS f
    UNION ALL
    SELECT x.seq, x.ts, x.tid, 'journal', 'xfs_log_cil_wait',
      coalesce(n.bdi, device!(x))
    FROM raw_xfs_log_cil_wait AS x
    LEFT JOIN wb_device AS n
      ON instr(n.partitions, ' ' || device!(x) || ' ') > 0
  )
SELECT
  s.seq, s.ts, s.end_ts, s.tid, f.kind,
  4 AS rank,
  f.what,
  'sched' AS basis,
  CASE WHEN s.end_ts >= b.last_ts THEN 'end' END AS cut,
  f.device,
  f.seq AS ref_seq,
  NULL AS reason,
  s.ts AS event_ts
FROM _wait_sleep AS s
CROSS JOIN wb_bounds AS b
JOIN announced AS f ON f.seq = s.before_seq
UNION ALL
-- Nothing tells when the task ran again.
SELECT
  f.seq, f.ts, NULL, f.tid, f.kind, 4, f.what, NULL, NULL, f.device, f.seq,
  NULL, f.ts
FROM announced AS f
LEFT JOIN _wait_watched AS w ON w.tid = f.tid
WHERE w.tid IS NULL
UNION ALL
SELECT
  e.seq,
  coalesce(s.ts, e.ts - e.told_ns),
  coalesce(s.end_ts, e.ts),
  e.tid, e.kind, 4, e.what,
  CASE WHEN s.seq IS NULL THEN 'reported' ELSE 'sched' END,
  NULL, e.device, e.seq, e.reason, e.ts
FROM reports AS e
LEFT JOIN _wait_sleep AS s ON s.after_seq = e.seq;

-- @view     _wait_watched
-- @summary  Tasks whose sleeps were recorded: by sched_switch, or all of 1 ms
--   and more.
-- @grain    task; order tid
-- @key      tid
-- @column   tid INTEGER thread
-- @materialize
CREATE VIEW _wait_watched AS
SELECT s.prev_pid AS tid
FROM raw_sched_switch AS s
UNION
SELECT k.tid
FROM raw_task AS k
WHERE recorded!('wbscope:blocked');

-- @view     _wait_outside
-- @summary  Time in which a task was blocked, as far as sched_switch or the
--   silence of a throttled task tells it; what known waits explain of it is
--   still in it. sched_switch: uninterruptible sleeps from 1 ms on. Without it:
--   a think time of half a second or more, in which the task did not get into
--   balance_dirty_pages(), when another writer of the bdi was as silent or the
--   journal had a request in flight: else it may have had nothing to write.
-- @grain    time; order tid, ts
-- @column   seq INTEGER of the sched_switch, or of the event that ended it
-- @column   ts INTEGER ns, start; of a think time the latest that it can be
-- @column   end_ts INTEGER ns, end
-- @column   what TEXT D sleep or think
-- @column   basis TEXT sched or events
-- @column   bdi TEXT backing device that the task writes to; NULL = not told
-- @source   mm/page-writeback.c balance_dirty_pages(): think is the time since
--   the scheduled end of the last pause; free run sets it back
CREATE VIEW _wait_outside AS
SELECT
  b.seq, b.ts, b.end_ts, b.tid,
  'D sleep' AS what,
  'sched' AS basis,
  NULL AS bdi
FROM wb_wait_end AS b
CROSS JOIN wb_rule AS v
WHERE b.end_ts - b.ts >= v.call_least_ns
UNION ALL
SELECT t.seq, t.ts, t.end_ts, t.tid, 'think', 'events', t.bdi
FROM _wait_think AS t
CROSS JOIN wb_rule AS v
CROSS JOIN (
  SELECT max(l.end_ts - l.ts) AS most_ns FROM _wait_think AS l
) AS m
WHERE EXISTS (
    SELECT 1
    FROM _wait_think AS o
    WHERE o.bdi = t.bdi
      AND o.ts > t.ts - m.most_ns
      AND o.ts < t.end_ts
      AND o.tid <> t.tid
      AND min(o.end_ts, t.end_ts) - max(o.ts, t.ts)
        >= v.most_ratio * (t.end_ts - t.ts)
  )
  OR v.most_ratio * (t.end_ts - t.ts) <= (
    SELECT total(min(j.end_ts, t.end_ts) - max(j.ts, t.ts))
    FROM _wait_commit AS j
    -- The journal of what lies on a disk writes to that.
    WHERE j.device IN (
        SELECT t.bdi
        UNION ALL
        SELECT k.disk FROM wb_stack AS k WHERE k.bdi = t.bdi
      )
      AND j.ts > t.ts - (SELECT max(l.end_ts - l.ts) FROM _wait_commit AS l)
      AND j.ts < t.end_ts
      AND j.end_ts > t.ts
  );

-- @view     _wait_think
-- @summary  Long think times of throttled tasks that sched_switch did not
--   watch.
-- @grain    event; order seq
-- @column   seq INTEGER of the balance_dirty_pages event that tells it
-- @column   ts INTEGER ns, start: not before the end of the last pause
-- @column   end_ts INTEGER ns, when the task called balance_dirty_pages()
-- @index    bdi ts
-- @materialize
-- @cost     44
CREATE VIEW _wait_think AS
WITH
  long_one AS (
    SELECT
      r.seq, r.prev_seq, r.tid, r.bdi,
      r.ts - r.paused * u.ms_ns AS end_ts,
      r.think * u.ms_ns AS think_ns
    -- In this order the index tells think times, and the table is read for the
    -- long ones only.
    FROM wb_units AS u
    CROSS JOIN wb_rule AS v
    CROSS JOIN raw_balance_dirty_pages AS r
    WHERE is_told!(r)
      AND r.think * u.ms_ns >= v.silent_least_ns
      AND r.tid NOT IN (SELECT w.tid FROM _wait_watched AS w)
  )
SELECT c.seq, c.ts, c.end_ts, c.tid, c.bdi
FROM (
  SELECT
    l.seq,
    max(
      l.end_ts - l.think_ns,
      coalesce(
        p.ts + CASE WHEN p.pause > 0 THEN p.pause * u.ms_ns ELSE 0 END,
        b.first_ts
      )
    ) AS ts,
    l.end_ts, l.tid, l.bdi
  FROM long_one AS l
  CROSS JOIN wb_units AS u
  CROSS JOIN wb_bounds AS b
  LEFT JOIN raw_balance_dirty_pages AS p ON p.seq = l.prev_seq
) AS c
CROSS JOIN wb_rule AS v
-- Events without a pause go on counting from the last one.
WHERE c.end_ts - c.ts >= v.silent_least_ns;

-- @view     _wait_commit
-- @summary  Requests of journals, from issue to the first completion.
-- @grain    request; order ts
-- @column   device TEXT major:minor
-- @column   ts INTEGER ns, when it was issued
-- @column   end_ts INTEGER ns, when it was completed
-- @index    device ts
-- @source   fs/jbd2/journal.c: the thread is called jbd2/<device>
-- @materialize
CREATE VIEW _wait_commit AS
SELECT
  device!(i) AS device,
  i.ts,
  min(c.ts) AS end_ts
FROM raw_block_rq_issue AS i
JOIN raw_block_rq_complete AS c
  ON c.dev_major = i.dev_major
  AND c.dev_minor = i.dev_minor
  AND c.sector = i.sector
  AND c.seq > i.seq
WHERE i.tid IN (SELECT k.tid FROM raw_task AS k WHERE k.comm GLOB 'jbd2/*')
GROUP BY i.seq, i.dev_major, i.dev_minor, i.ts;
