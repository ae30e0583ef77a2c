-- SPDX-License-Identifier: Apache-2.0
-- Calls of balance_dirty_pages() by two probes of wbscope record.

-- @view     wb_probe_call
-- @shared
-- @summary  Calls of balance_dirty_pages() by the probes on its entry and
--   return: exact bytes and time, also of calls in free run, which fire no
--   event. Empty where the probes were not recorded.
-- @grain    call; order seq
-- @key      seq
-- @optional wbscope:balance_dirty_pages_entry,
--   wbscope:balance_dirty_pages_return, writeback:balance_dirty_pages
-- @column   seq INTEGER of the entry
-- @column   ts INTEGER ns, trace clock, of the entry
-- @column   end_seq INTEGER of the return; NULL = not in the trace
-- @column   end_ts INTEGER ns, of the return
-- @column   call_ns INTEGER from entry to return: how long the task was held
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device; of a call in free run that of another call
--   with the same bdi_writeback; NULL = none was throttled
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER balance_dirty_pages events of the call; 0 = it
--   was in free run
-- @column   is_paused INTEGER 1: one of them has a pause above 0
-- @column   is_async INTEGER 1: it returned -EAGAIN in place of the last pause
--   (io_uring NOWAIT)
-- @column   dirtied_bytes INTEGER what the task dirtied since its last call:
--   pages minus those that the last call left uncounted
-- @source   mm/page-writeback.c balance_dirty_pages(): nr_dirtied is set to 0
--   in free run, after a pause and when virtual time is moved on or reset
-- @materialize
CREATE VIEW wb_probe_call AS
WITH
  steps AS (
    SELECT
      e.tid, e.seq, e.ts,
      e.seq AS entry_seq,
      NULL AS return_seq,
      e.wb, e.pages,
      NULL AS ret,
      NULL AS bdi,
      NULL AS cgroup_ino,
      NULL AS pause,
      NULL AS is_reset
    FROM raw_balance_dirty_pages_entry AS e
    UNION ALL
    SELECT r.tid, r.seq, r.ts, NULL, r.seq, NULL, NULL, r.ret, NULL, NULL, NULL,
      NULL
    FROM raw_balance_dirty_pages_return AS r
    UNION ALL
    SELECT
      b.tid, b.seq, b.ts, NULL, NULL, NULL, NULL, NULL, b.bdi, b.cgroup_ino,
      b.pause,
      -- A pause of -HZ jiffies or more is -1000 ms.
      CASE WHEN b.pause > 0 OR b.period > 0 OR b.pause < -1000 THEN 1 ELSE 0 END
    -- Nothing is read where there is none.
    FROM (SELECT 1 FROM raw_balance_dirty_pages_entry LIMIT 1) AS o
    CROSS JOIN raw_balance_dirty_pages AS b
  ),
  -- A step belongs to the last entry before it and, of two returns, the first.
  placed AS (
    SELECT
      s.*,
      max(s.entry_seq) OVER task AS call_seq,
      max(s.return_seq) OVER task_so_far AS last_return_seq
    FROM steps AS s
    WINDOW
      task AS (PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING),
      task_so_far AS (
        PARTITION BY s.tid ORDER BY s.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  gathered AS (
    SELECT
      p.tid, p.call_seq,
      max(CASE WHEN p.entry_seq IS NOT NULL THEN p.ts END) AS ts,
      max(p.return_seq) AS end_seq,
      max(CASE WHEN p.return_seq IS NOT NULL THEN p.ts END) AS end_ts,
      max(p.wb) AS wb,
      max(p.pages) AS pages,
      max(p.ret) AS ret,
      max(p.bdi) AS bdi,
      max(p.cgroup_ino) AS cgroup_ino,
      count(p.bdi) AS events_count,
      max(CASE WHEN p.pause > 0 THEN 1 ELSE 0 END) AS is_paused,
      max(p.is_reset) AS is_reset,
      max(CASE WHEN p.bdi IS NOT NULL THEN p.seq END) AS last_event_seq
    FROM placed AS p
    WHERE p.call_seq IS NOT NULL
      AND (
        p.entry_seq IS NOT NULL
        OR coalesce(p.last_return_seq < p.call_seq, 1)
      )
    GROUP BY p.tid, p.call_seq
  ),
  -- The same bdi_writeback is the same bdi and cgroup.
  known AS (
    SELECT g.wb, max(g.bdi) AS bdi, max(g.cgroup_ino) AS cgroup_ino
    FROM gathered AS g
    WHERE g.bdi IS NOT NULL AND g.wb <> 0
    GROUP BY g.wb
  ),
  returned AS (
    SELECT
      g.*,
      coalesce(g.bdi, k.bdi) AS its_bdi,
      CASE WHEN g.bdi IS NULL THEN k.cgroup_ino ELSE g.cgroup_ino END
        AS its_cgroup_ino,
      -- Up to 5.19 the function returns nothing.
      CASE WHEN g.ret = -11 AND v.version >= 6000 AND l.pause > 0 THEN 1 ELSE 0
      END AS is_async
    FROM gathered AS g
    CROSS JOIN wb_units AS v
    LEFT JOIN known AS k ON k.wb = g.wb
    LEFT JOIN raw_balance_dirty_pages AS l ON l.seq = g.last_event_seq
  ),
  counted AS (
    SELECT
      r.*,
      CASE
        WHEN r.is_async = 0 AND coalesce(r.is_reset, 1) = 1 THEN 0
        ELSE r.pages
      END AS left_pages
    FROM returned AS r
  ),
  carried AS (
    SELECT
      c.*,
      lag(c.left_pages, 1, 0) OVER (PARTITION BY c.tid ORDER BY c.call_seq)
        AS carry_pages
    FROM counted AS c
  )
SELECT
  c.call_seq AS seq,
  c.ts, c.end_seq, c.end_ts,
  -- Other clocks do not count ns.
  CASE WHEN coalesce(m.value, 'ns') = 'ns' THEN c.end_ts - c.ts END AS call_ns,
  c.tid,
  c.its_bdi AS bdi,
  c.its_cgroup_ino AS cgroup_ino,
  c.events_count, c.is_paused, c.is_async,
  CASE
    -- Lost events can hide that the count was reset, and a new task can have
    -- the tid of an old one.
    WHEN c.pages >= c.carry_pages THEN c.pages - c.carry_pages
    ELSE c.pages
  END * u.page_bytes AS dirtied_bytes
FROM carried AS c
CROSS JOIN wb_units AS u
LEFT JOIN raw_meta AS m ON m.key = 'clock_unit';
