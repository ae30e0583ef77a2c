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
-- @needs    wb_blocked, _outside_think, wb_wait_request, wb_rule
-- @optional sched:sched_switch, writeback:balance_dirty_pages,
--   block:block_rq_issue, block:block_rq_complete
-- @column   seq INTEGER of the sched_switch, or of the event that ended it
-- @column   ts INTEGER ns, start; of a think time the latest that it can be
-- @column   end_ts INTEGER ns, end
-- @column   tid INTEGER thread
-- @column   what TEXT D sleep or think
-- @column   basis TEXT sched or events
-- @column   bdi TEXT backing device that the task writes to; NULL = not told
-- @source   mm/page-writeback.c balance_dirty_pages(): think is the time since
--   the scheduled end of the last pause; free run sets it back
CREATE VIEW wb_wait_outside AS
SELECT
  b.seq,
  b.ts,
  b.end_ts,
  b.tid,
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
WHERE EXISTS (
    SELECT 1
    FROM _outside_think AS o
    WHERE o.bdi = t.bdi
      AND o.tid <> t.tid
      AND min(o.end_ts, t.end_ts) - max(o.ts, t.ts)
        >= v.most_ratio * (t.end_ts - t.ts)
  )
  OR v.most_ratio * (t.end_ts - t.ts) <= (
    SELECT
      total(
        min(j.end_ts, t.end_ts) - max(coalesce(j.issue_ts, j.ts), t.ts)
      )
    FROM wb_wait_request AS j
    WHERE j.is_journal = 1
      AND j.device = t.bdi
      AND j.end_ts > t.ts
      AND coalesce(j.issue_ts, j.ts) < t.end_ts
  );

-- @view     _outside_think
-- @summary  Long think times of throttled tasks that sched_switch did not
--   watch.
-- @grain    event; order seq
-- @needs    raw_balance_dirty_pages, raw_sched_switch, wb_bounds, wb_rule,
--   wb_units
-- @optional writeback:balance_dirty_pages
-- @column   seq INTEGER of the balance_dirty_pages event that tells it
-- @column   ts INTEGER ns, start: not before the end of the last pause
-- @column   end_ts INTEGER ns, when the task called balance_dirty_pages()
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device
-- @materialize
CREATE VIEW _outside_think AS
WITH
  long_one AS (
    SELECT
      r.seq,
      r.prev_seq,
      r.tid,
      r.bdi,
      r.ts - r.paused * u.ms_ns AS end_ts,
      r.think * u.ms_ns AS think_ns
    FROM raw_balance_dirty_pages AS r
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
    WHERE r.think * u.ms_ns >= v.silent_least_ns
      AND r.tid NOT IN (SELECT s.prev_pid FROM raw_sched_switch AS s)
  )
SELECT
  l.seq,
  max(
    l.end_ts - l.think_ns,
    coalesce(
      p.ts + CASE WHEN p.pause > 0 THEN p.pause * u.ms_ns ELSE 0 END,
      b.first_ts
    )
  ) AS ts,
  l.end_ts,
  l.tid,
  l.bdi
FROM long_one AS l
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS b
LEFT JOIN raw_balance_dirty_pages AS p ON p.seq = l.prev_seq
WHERE l.end_ts > b.first_ts;
