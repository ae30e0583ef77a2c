-- SPDX-License-Identifier: Apache-2.0
-- What is wrong.

-- @query    stall_facts
-- @title    What there is to tell of each of the longest waits
-- @summary  One wait a row: what its task had dirtied, what the limits were,
--   whose pages filled the pool, what the flusher and the device did meanwhile.
-- @read     From left to right it is a story: dirtied, told to sleep, by which
--   limit, whose pages, who writes them, how fast. `explain --stall` tells it
--   in words. Of more than 1000 waits that the filters choose, the longest
--   1000.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    stall; order dur descending
-- @keys     stall_id, tid, comm, kind, cause
-- @events   as lost_time
-- @optional writeback:global_dirty_state, block:block_rq_issue,
--   block:block_rq_complete, writeback:writeback_start,
--   writeback:writeback_written, sched:sched_switch
-- @column   stall_id INTEGER as in stalls
-- @column   ts INTEGER ns, start of the wait
-- @column   dur INTEGER ns, its own time
-- @column   end_ts INTEGER ns, its end
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   kind TEXT as in stalls
-- @column   cause TEXT as in stalls
-- @column   finding TEXT as in lost_time
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; throttle only
-- @column   dirtied_bytes INTEGER throttle: pages that the call counted
-- @column   pause_ns INTEGER throttle: sleep that it was told
-- @column   domain TEXT throttle: whose limits, global or memcg
-- @column   dirty_bytes INTEGER throttle: dirty pages of that domain
-- @column   setpoint_bytes INTEGER throttle: where they should settle
-- @column   limit_bytes INTEGER throttle: where writers stop
-- @column   task_ratelimit_bytes_per_s INTEGER throttle: rate that it may dirty
--   at
-- @column   wb_dirty_bytes INTEGER throttle: what its own wb held
-- @column   own_share_ratio REAL of the pool
-- @column   holder_bdi TEXT the other wb that held most; NULL = none is known
-- @column   holder_cgroup_ino INTEGER of that wb
-- @column   holder_share_ratio REAL of the pool
-- @column   nr_writeback_bytes INTEGER throttle: pages under writeback
-- @column   work_reason TEXT why the flusher of the bdi wrote: the last work
--   that had begun before the end of the wait
-- @column   work_ts INTEGER ns, when it began
-- @column   work_bytes INTEGER what it gave to the device; NULL = not told
-- @column   work_is_over INTEGER 1: it had ended before the wait began
-- @column   written_bytes INTEGER what the device completed in the wait; NULL =
--   not recorded
-- @column   written_count INTEGER in so many requests
-- @column   device_ratio REAL share of the wait in which it had requests
-- @column   journal_ratio REAL share in which its journal committed
-- @column   call_ns INTEGER throttle: the whole call, where this was its last
--   sleep
-- @source   docs/findings.md
-- @cost     150
WITH
  chosen AS (
    SELECT
      l.*,
      CASE l.kind WHEN 'throttle' THEN s.ref_seq END AS throttle_seq,
      l.ts + s.span_ns AS end_ts,
      s.journal_ratio
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    JOIN wb_stall AS s ON s.wait_id = l.wait_id
    WHERE in_time!(l.ts, b)
      AND asked!(l, p)
    ORDER BY l.dur DESC, l.wait_id
    LIMIT 1000
  ),
  -- Few of millions of events.
  state AS MATERIALIZED (
    SELECT
      t.seq, t.domain, t.dirty_bytes, t.limit_bytes, t.setpoint_bytes,
      t.task_ratelimit_bytes_per_s, t.wb_dirty_bytes, t.dirtied_bytes,
      t.pause_ns, t.call_ns
    FROM chosen AS c
    CROSS JOIN wb_throttle AS t ON t.seq = c.throttle_seq
  ),
  -- Sums of what each device wrote, at the borders of waits: what ended at the
  -- very start of one counts, and what ended at its end.
  step AS (
    SELECT
      d.bdi, d.ts,
      1 AS place,
      d.bytes,
      1 AS requests,
      NULL AS wait_id,
      NULL AS sign
    FROM _bdi_done AS d
    WHERE d.op = 'write'
    UNION ALL
    SELECT c.bdi, c.ts, 0, 0, 0, c.wait_id, -1
    FROM chosen AS c
    WHERE c.bdi IN (SELECT d.bdi FROM _bdi_done AS d)
    UNION ALL
    SELECT c.bdi, c.end_ts, 2, 0, 0, c.wait_id, 1
    FROM chosen AS c
    WHERE c.bdi IN (SELECT d.bdi FROM _bdi_done AS d)
  ),
  summed AS (
    SELECT
      s.wait_id, s.sign,
      sum(s.bytes) OVER written AS bytes,
      sum(s.requests) OVER written AS requests
    FROM step AS s
    WINDOW written AS (
      PARTITION BY s.bdi ORDER BY s.ts, s.place ROWS UNBOUNDED PRECEDING
    )
  ),
  meanwhile AS MATERIALIZED (
    SELECT
      m.wait_id,
      sum(m.sign * m.bytes) AS written_bytes,
      sum(m.sign * m.requests) AS written_count
    FROM summed AS m
    WHERE m.wait_id IS NOT NULL
    GROUP BY m.wait_id
  )
SELECT
  c.wait_id AS stall_id,
  c.ts, c.dur, c.end_ts, c.tid, c.comm, c.kind, c.cause, c.finding, c.bdi,
  c.cgroup_ino, t.dirtied_bytes, t.pause_ns, t.domain, t.dirty_bytes,
  t.setpoint_bytes, t.limit_bytes, t.task_ratelimit_bytes_per_s,
  t.wb_dirty_bytes, c.own_share_ratio, c.holder_bdi, c.holder_cgroup_ino,
  c.holder_share_ratio,
  c.nr_writeback * u.page_bytes AS nr_writeback_bytes,
  w.reason AS work_reason,
  w.started_ts AS work_ts,
  w.bytes AS work_bytes,
  CASE WHEN w.finished_ts < c.ts THEN 1 ELSE 0 END AS work_is_over,
  m.written_bytes, m.written_count, c.device_ratio, c.journal_ratio, t.call_ns
FROM chosen AS c
CROSS JOIN wb_units AS u
LEFT JOIN state AS t ON t.seq = c.throttle_seq
LEFT JOIN meanwhile AS m ON m.wait_id = c.wait_id
LEFT JOIN wb_work AS w
  ON w.seq = (
    SELECT o.seq
    FROM wb_work AS o
    WHERE o.bdi = c.bdi AND o.started_ts <= c.end_ts
    ORDER BY o.started_ts DESC, o.seq DESC
    LIMIT 1
  )
ORDER BY c.dur DESC, c.wait_id;

-- @view     _bdi_done
-- @summary  Completed block requests of each disk, and once more under each bdi
--   that lies on it (wb_stack): not to be summed over devices.
-- @grain    completion and bdi; order ts
-- @column   bdi TEXT the disk, or what lies on it
-- @column   bytes INTEGER completed
CREATE VIEW _bdi_done AS
WITH
  done AS (
    SELECT
      c.ts,
      device!(c) AS device,
      c.op,
      c.nr_sector * u.sector_bytes AS bytes
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
  )
SELECT d.ts, d.device AS bdi, d.op, d.bytes
FROM done AS d
UNION ALL
SELECT d.ts, k.bdi, d.op, d.bytes
FROM wb_stack AS k
CROSS JOIN done AS d ON d.device = k.disk;
