-- SPDX-License-Identifier: Apache-2.0
-- When tasks stood still for a reason that no event of their own tells.

-- @view     wb_wait_outside
-- @shared
-- @summary  Time in which a task was blocked, as far as sched_switch or the
--   silence of a throttled task tells it; what known waits explain of it is
--   still in it. sched_switch: uninterruptible sleeps from 1 ms on. Without it:
--   a think time of half a second or more, in which the task did not get into
--   balance_dirty_pages(), when another writer of the bdi was as silent or the
--   journal had a request in flight: else it may have had nothing to write.
-- @grain    time; order tid, ts
-- @optional sched:sched_switch, writeback:balance_dirty_pages,
--   block:block_rq_issue, block:block_rq_complete
-- @column   seq INTEGER of the sched_switch, or of the event that ended it
-- @column   ts INTEGER ns, start; of a think time the latest that it can be
-- @column   end_ts INTEGER ns, end
-- @column   what TEXT D sleep or think
-- @column   basis TEXT sched or events
-- @column   bdi TEXT backing device that the task writes to; NULL = not told
-- @source   mm/page-writeback.c balance_dirty_pages(): think is the time since
--   the scheduled end of the last pause; free run sets it back
CREATE VIEW wb_wait_outside AS
SELECT
  b.seq, b.ts, b.end_ts, b.tid,
  'D sleep' AS what,
  'sched' AS basis,
  NULL AS bdi
FROM wb_blocked AS b
CROSS JOIN wb_rule AS v
WHERE b.end_ts - b.ts >= v.call_least_ns
UNION ALL
SELECT t.seq, t.ts, t.end_ts, t.tid, 'think', 'events', t.bdi
FROM _outside_think AS t
CROSS JOIN wb_rule AS v
CROSS JOIN (
  SELECT max(l.end_ts - l.ts) AS most_ns FROM _outside_think AS l
) AS m
WHERE EXISTS (
    SELECT 1
    FROM _outside_think AS o
    WHERE o.bdi = t.bdi
      AND o.ts > t.ts - m.most_ns
      AND o.ts < t.end_ts
      AND o.tid <> t.tid
      AND min(o.end_ts, t.end_ts) - max(o.ts, t.ts)
        >= v.most_ratio * (t.end_ts - t.ts)
  )
  OR v.most_ratio * (t.end_ts - t.ts) <= (
    SELECT total(min(j.end_ts, t.end_ts) - max(j.ts, t.ts))
    FROM _outside_journal AS j
    WHERE j.device = t.bdi
      AND j.ts > t.ts - (SELECT max(l.end_ts - l.ts) FROM _outside_journal AS l)
      AND j.ts < t.end_ts
      AND j.end_ts > t.ts
  );

-- @view     wb_journal_basis
-- @shared
-- @summary  Whether an event of a journal tells when it commits. Else requests
--   of its thread do, which is inferred.
-- @grain    one row
-- @optional jbd2:jbd2_start_commit, xfs:xfs_log_cil_wait,
--   xfs:xfs_log_grant_sleep
-- @column   confidence TEXT measured or inferred
CREATE VIEW wb_journal_basis AS
SELECT
  CASE
    WHEN EXISTS (SELECT 1 FROM raw_jbd2_start_commit)
      OR EXISTS (SELECT 1 FROM raw_xfs_log_cil_wait)
      OR EXISTS (SELECT 1 FROM raw_xfs_log_grant_sleep)
      THEN 'measured'
    ELSE 'inferred'
  END AS confidence
FROM (SELECT 1 AS one) AS o;

-- @view     wb_outside_reason
-- @shared
-- @summary  What a task waited for outside of throttling, where what it did
--   right before tells: a read that it had given to a disk was in flight for
--   half of the sleep or more; or reclaim of its memory cgroup had just ended,
--   and it slept for longer than memory.high lets a task go without.
-- @grain    such a wait, also one that known waits explain; order wait_id
-- @key      wait_id
-- @optional sched:sched_switch, block:block_rq_issue, block:block_rq_complete,
--   vmscan:mm_vmscan_memcg_reclaim_begin
-- @column   reason TEXT read or memory.high; a read goes before
-- @column   device TEXT of the last such read, major:minor; else NULL
-- @source   mm/filemap.c filemap_update_page(), which sleeps for readahead,
--   too; mm/memcontrol.c mem_cgroup_handle_over_high(): behind its reclaim a
--   task sleeps for up to 2 s, and not at all for HZ / 100 jiffies and less
-- @materialize
CREATE VIEW wb_outside_reason AS
WITH
  asked AS MATERIALIZED (
    SELECT w.wait_id, w.seq, w.ts, w.end_ts, w.tid
    FROM wb_wait AS w
    WHERE w.kind = 'blocked outside throttling'
      AND w.basis = 'sched'
      -- Nothing is read where nobody asks.
      AND EXISTS (SELECT 1 FROM raw_sched_switch)
  ),
  steps AS (
    SELECT
      a.tid, a.seq, a.ts, a.end_ts, a.wait_id,
      NULL AS read_seq,
      NULL AS read_end_ts,
      NULL AS reclaim_end_ts
    FROM asked AS a
    UNION ALL
    SELECT r.tid, r.seq, r.ts, NULL, NULL, r.seq, r.end_ts, NULL
    FROM wb_wait_request AS r
    WHERE r.op = 'read'
      AND r.tid IN (SELECT a.tid FROM asked AS a)
      AND EXISTS (SELECT 1 FROM asked)
    UNION ALL
    SELECT m.tid, m.seq, m.ts, NULL, NULL, NULL, NULL, m.end_ts
    FROM wb_wait AS m
    WHERE m.kind = 'memcg reclaim'
      AND m.end_ts IS NOT NULL
      AND m.tid IN (SELECT a.tid FROM asked AS a)
      AND EXISTS (SELECT 1 FROM asked)
  ),
  followed AS (
    SELECT
      s.wait_id, s.ts, s.end_ts,
      max(s.read_seq) OVER so_far AS read_seq,
      max(s.read_end_ts) OVER so_far AS read_end_ts,
      max(s.reclaim_end_ts) OVER so_far AS reclaim_end_ts
    FROM steps AS s
    WINDOW so_far AS (
      PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
    )
  ),
  judged AS (
    SELECT
      f.wait_id, f.read_seq,
      coalesce(
        min(f.read_end_ts, f.end_ts) - f.ts
          >= v.most_ratio * (f.end_ts - f.ts), 0
      ) AS is_read,
      f.end_ts - f.ts > v.penalty_least_ns
        AND f.ts - f.reclaim_end_ts BETWEEN 0 AND v.run_slack_ns AS is_high
    FROM followed AS f
    CROSS JOIN wb_rule AS v
    WHERE f.wait_id IS NOT NULL
  )
SELECT
  j.wait_id,
  CASE WHEN j.is_read THEN 'read' ELSE 'memory.high' END AS reason,
  CASE WHEN j.is_read THEN r.device END AS device
FROM judged AS j
LEFT JOIN wb_wait_request AS r ON r.seq = j.read_seq
WHERE j.is_read OR j.is_high;

-- @view     wb_watched
-- @shared
-- @summary  Which waits other than throttling the recorded events can tell.
-- @grain    one row
-- @optional sched:sched_switch, syscalls:sys_enter_write,
--   syscalls:sys_exit_write
-- @column   is_watched INTEGER 1: sleeps of tasks, or their writes, were
--   recorded; 0 = whatever else held a task up is not known
-- @column   has_calls INTEGER 1: writes of tasks were recorded
-- @column   is_deep INTEGER 1: sleeps, block requests and writes were, as with
--   the profile deep
CREATE VIEW wb_watched AS
SELECT
  s.has_sleeps OR s.has_calls AS is_watched,
  s.has_calls,
  s.has_sleeps AND s.has_calls AND s.has_requests AS is_deep
FROM (
  SELECT
    EXISTS (SELECT 1 FROM raw_sched_switch) AS has_sleeps,
    EXISTS (SELECT 1 FROM wb_write_pair)
      OR EXISTS (
        SELECT 1 FROM raw_event_counts AS c
        WHERE c.event = 'syscalls:sys_enter_write'
      )
      OR EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event = 'syscalls:sys_enter_write'
      ) AS has_calls,
    EXISTS (
      SELECT 1 FROM raw_event_format AS f
      WHERE f.event = 'block:block_rq_issue'
    )
    OR EXISTS (
      SELECT 1 FROM raw_event_counts AS c WHERE c.event = 'block:block_rq_issue'
    ) AS has_requests
) AS s;

-- @view     _outside_think
-- @summary  Long think times of throttled tasks that sched_switch did not
--   watch.
-- @grain    event; order seq
-- @optional writeback:balance_dirty_pages
-- @column   seq INTEGER of the balance_dirty_pages event that tells it
-- @column   ts INTEGER ns, start: not before the end of the last pause
-- @column   end_ts INTEGER ns, when the task called balance_dirty_pages()
-- @index    bdi ts
-- @materialize
-- @cost     44
CREATE VIEW _outside_think AS
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
      AND r.tid NOT IN (SELECT s.prev_pid FROM raw_sched_switch AS s)
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

-- @view     _outside_journal
-- @summary  Requests of journals, from issue to the first completion; once more
--   under each bdi that lies on their disk.
-- @grain    request and device; order ts
-- @optional block:block_rq_issue, block:block_rq_complete
-- @column   device TEXT major:minor
-- @column   ts INTEGER ns, when it was issued
-- @column   end_ts INTEGER ns, when it was completed
-- @index    device ts
-- @source   fs/jbd2/journal.c: the thread is called jbd2/<device>
-- @materialize
CREATE VIEW _outside_journal AS
WITH
  request AS (
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
    GROUP BY i.seq, i.dev_major, i.dev_minor, i.ts
  )
SELECT r.device, r.ts, r.end_ts
FROM request AS r
UNION ALL
SELECT s.bdi, r.ts, r.end_ts
FROM wb_stack AS s
CROSS JOIN request AS r ON r.device = s.disk;
