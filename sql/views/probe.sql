-- SPDX-License-Identifier: Apache-2.0
-- Calls of balance_dirty_pages() whose returns were recorded: by two probes of
-- wbscope record, or by a patched kernel.

-- @view     wb_probe_call
-- @summary  Calls of balance_dirty_pages() by the probes on its entry and
--   return: exact bytes and time, also of calls in free run, which fire no
--   event. Empty where the probes were not recorded.
-- @grain    call; order seq
-- @optional wbscope:balance_dirty_pages_entry,
--   wbscope:balance_dirty_pages_return, writeback:balance_dirty_pages
-- @source   mm/page-writeback.c balance_dirty_pages(): nr_dirtied is set to 0
--   in free run, after a pause and when virtual time is moved on or reset
CREATE VIEW wb_probe_call AS
SELECT
  c.seq, c.ts, c.end_seq, c.end_ts, c.call_ns, c.tid, c.bdi, c.cgroup_ino,
  c.events_count, c.is_paused, c.is_async, c.dirtied_bytes
FROM _probe_call AS c;

-- @view     wb_throttle_done
-- @shared
-- @summary  The call of balance_dirty_pages() that each event was fired in, as
--   its return proves it (balance_dirty_pages_done of a patched kernel, else
--   the probes): its last `loops` events before it. The call's measured wait is
--   shared out to those of its events that a sleep followed, by the time to the
--   next event or to the return; the shares add up to it. Empty without either.
-- @grain    event; order seq
-- @key      seq
-- @optional writeback:balance_dirty_pages_done,
--   wbscope:balance_dirty_pages_return
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   done_seq INTEGER of the return of its call; NULL = not recorded:
--   lost, or the trace ended in the call
-- @column   done_ts INTEGER ns, of that
-- @column   is_first INTEGER 1: first recorded event of that call
-- @column   is_last INTEGER 1: last event of that call
-- @column   follows_done INTEGER 1: the call of the task's event before has a
--   recorded return
-- @column   precedes_done INTEGER 1: that of the task's event behind has
-- @column   is_async INTEGER 1: the pause was not slept (io_uring NOWAIT)
-- @column   wait_ns INTEGER its share of the measured wait; NULL = none to
--   share out: the trace began in the call, so that part of the wait is not in
--   it
-- @column   wait_ts INTEGER ns, where its share begins, when the call waited
--   longer than its recorded events have room for: the shares lie end to end
--   and end with the call; NULL = they fit
-- @column   call_ns INTEGER from the call's entry to its return
-- @column   domain TEXT whose limits throttled when the call returned: global
--   or memcg; NULL = the return does not tell
-- @column   basis TEXT measured: told by the kernel; probe: between two probes
-- @source   kernel-tracepoints/; mm/page-writeback.c balance_dirty_pages()
-- @materialize
CREATE VIEW wb_throttle_done AS
WITH
  returned AS (
    SELECT d.seq, d.ts, d.tid, d.bdi, d.wait_ns, d.total_ns, d.loops,
      d.exit = 5 AS is_async, d.domain, 'measured' AS basis
    FROM raw_balance_dirty_pages_done AS d
    UNION ALL
    SELECT p.end_seq, p.end_ts, p.tid, p.bdi, p.is_paused * p.call_ns,
      p.call_ns, p.events_count, p.is_async, NULL, 'probe'
    FROM _probe_call AS p
    WHERE p.call_ns >= 0
      AND p.events_count > 0
      AND NOT EXISTS (SELECT 1 FROM raw_balance_dirty_pages_done)
  ),
  steps AS (
    SELECT b.tid, b.seq, b.ts, b.bdi, b.pause, NULL AS done_seq
    -- Nothing is read where there is none.
    FROM (SELECT 1 FROM returned LIMIT 1) AS o
    CROSS JOIN raw_balance_dirty_pages AS b
    UNION ALL
    SELECT d.tid, d.seq, d.ts, d.bdi, NULL, d.seq
    FROM returned AS d
  ),
  -- The next return of the task, and how many events there are up to it.
  ahead AS (
    SELECT
      s.*,
      min(s.done_seq) OVER (
        PARTITION BY s.tid ORDER BY s.seq DESC ROWS UNBOUNDED PRECEDING
      ) AS next_done_seq
    FROM steps AS s
  ),
  counted AS (
    SELECT
      a.tid, a.seq, a.ts, a.bdi, a.pause, a.next_done_seq,
      row_number() OVER (
        PARTITION BY a.tid, a.next_done_seq ORDER BY a.seq DESC
      ) AS place_back
    FROM ahead AS a
    WHERE a.done_seq IS NULL
  ),
  called AS (
    SELECT
      c.tid, c.seq, c.ts, c.pause,
      d.seq AS done_seq,
      d.ts AS done_ts,
      d.wait_ns, d.total_ns, d.loops, d.domain, d.basis, c.place_back,
      CASE WHEN d.is_async = 1 AND c.place_back = 1 THEN 1 ELSE 0 END
        AS is_async
    FROM counted AS c
    CROSS JOIN wb_rule AS v
    LEFT JOIN raw_meta AS m ON m.key = 'clock_unit'
    -- After a lost event, one of an earlier call is in its place: that was
    -- before this call's entry.
    LEFT JOIN returned AS d
      ON d.seq = c.next_done_seq
      AND c.place_back <= d.loops
      AND c.bdi = d.bdi
      AND (m.value <> 'ns' OR c.ts >= d.ts - d.total_ns - v.clock_jump_ns)
  ),
  placed AS (
    SELECT
      c.*,
      count(*) OVER whole AS events_count,
      row_number() OVER call AS place,
      lag(c.done_seq) OVER task AS last_done_seq,
      lead(c.done_seq) OVER task AS coming_done_seq,
      CASE
        WHEN c.pause > 0 AND c.is_async = 0
          THEN lead(c.ts, 1, c.done_ts) OVER call - c.ts + 1
        ELSE 0
      END AS room_ns
    FROM called AS c
    WINDOW
      task AS (PARTITION BY c.tid ORDER BY c.seq),
      call AS (PARTITION BY c.tid, c.done_seq ORDER BY c.seq),
      whole AS (PARTITION BY c.tid, c.done_seq)
  ),
  summed AS (
    SELECT
      p.*,
      sum(p.room_ns) OVER (
        PARTITION BY p.tid, p.done_seq ORDER BY p.seq ROWS UNBOUNDED PRECEDING
      ) AS room_so_far_ns,
      sum(p.room_ns) OVER (PARTITION BY p.tid, p.done_seq) AS room_total_ns,
      -- All of the wait is in the trace. A wait longer than its call is none.
      p.wait_ns >= 0
      AND p.wait_ns <= p.total_ns
      AND (p.events_count = p.loops OR p.done_ts - p.total_ns >= m.value)
        AS is_measured
    FROM placed AS p
    LEFT JOIN raw_meta AS m ON m.key = 'first_ts'
  ),
  -- Rounding the running sum keeps the total exact.
  shared AS (
    SELECT
      s.*,
      CAST(s.wait_ns * (1.0 * s.room_so_far_ns / s.room_total_ns) AS INTEGER)
        AS waited_ns,
      CAST(
        s.wait_ns * (1.0 * (s.room_so_far_ns - s.room_ns) / s.room_total_ns)
        AS INTEGER
      ) AS waited_before_ns
    FROM summed AS s
  )
SELECT
  s.seq, s.done_seq, s.done_ts,
  CASE WHEN s.done_seq IS NOT NULL AND s.place = 1 THEN 1 ELSE 0 END
    AS is_first,
  CASE WHEN s.done_seq IS NOT NULL AND s.place_back = 1 THEN 1 ELSE 0 END
    AS is_last,
  CASE WHEN s.last_done_seq IS NOT NULL THEN 1 ELSE 0 END AS follows_done,
  CASE WHEN s.coming_done_seq IS NOT NULL THEN 1 ELSE 0 END AS precedes_done,
  s.is_async,
  CASE
    WHEN s.is_measured AND s.pause > 0 AND s.is_async = 1 THEN 0
    WHEN s.is_measured AND s.room_ns > 0 THEN s.waited_ns - s.waited_before_ns
  END AS wait_ns,
  CASE
    WHEN s.is_measured AND s.room_ns > 0 AND s.wait_ns > s.room_total_ns
      THEN s.done_ts - (s.wait_ns - s.waited_before_ns)
  END AS wait_ts,
  CASE WHEN s.wait_ns >= 0 AND s.wait_ns <= s.total_ns THEN s.total_ns END
    AS call_ns,
  CASE s.domain WHEN 0 THEN 'global' WHEN 1 THEN 'memcg' END AS domain,
  s.basis
FROM shared AS s;

-- @view     wb_throttle_unseen
-- @shared
-- @summary  Calls of balance_dirty_pages() that waited, as a patched kernel
--   tells when they return, of which no event with a pause is in the trace.
-- @grain    call; order seq
-- @optional writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages_done
-- @column   wait_ns INTEGER how long it waited
CREATE VIEW wb_throttle_unseen AS
SELECT d.seq, d.wait_ns
FROM raw_balance_dirty_pages_done AS d
CROSS JOIN wb_bounds AS b
WHERE d.wait_ns > 0
  AND d.wait_ns <= d.total_ns
  AND d.ts - d.total_ns >= b.first_ts
  AND d.seq NOT IN (
    SELECT t.done_seq
    FROM wb_throttle_done AS t
    WHERE t.done_seq IS NOT NULL AND t.wait_ns > 0
  );

-- @view     _probe_call
-- @summary  wb_probe_call.
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
CREATE VIEW _probe_call AS
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
    CROSS JOIN wb_trace AS v
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
