-- SPDX-License-Identifier: Apache-2.0
-- The call of balance_dirty_pages() that an event was fired in, and whose
-- limits decided there.

-- @view     wb_throttle_done
-- @summary  The call of balance_dirty_pages() that each event was fired in, as
--   balance_dirty_pages_done of a patched kernel proves it: its last `loops`
--   events before it. The call's measured wait is shared out to those of its
--   events that a sleep followed, by the time to the next event or to the
--   return; the shares add up to it. Empty on other kernels.
-- @grain    event; order seq
-- @key      seq
-- @needs    raw_balance_dirty_pages, raw_balance_dirty_pages_done, raw_meta,
--   wb_rule
-- @optional writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   done_seq INTEGER of the balance_dirty_pages_done of its call; NULL
--   = not recorded: lost, or the trace ended in the call
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
--   or memcg
-- @source   kernel-tracepoints/; mm/page-writeback.c balance_dirty_pages()
-- @materialize
CREATE VIEW wb_throttle_done AS
WITH
  steps AS (
    SELECT b.tid, b.seq, b.ts, b.bdi, b.pause, NULL AS done_seq
    FROM raw_balance_dirty_pages AS b
    WHERE EXISTS (SELECT 1 FROM raw_balance_dirty_pages_done)
    UNION ALL
    SELECT d.tid, d.seq, d.ts, d.bdi, NULL, d.seq
    FROM raw_balance_dirty_pages_done AS d
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
      a.tid,
      a.seq,
      a.ts,
      a.bdi,
      a.pause,
      a.next_done_seq,
      row_number() OVER (
        PARTITION BY a.tid, a.next_done_seq ORDER BY a.seq DESC
      ) AS place_back
    FROM ahead AS a
    WHERE a.done_seq IS NULL
  ),
  called AS (
    SELECT
      c.tid,
      c.seq,
      c.ts,
      c.pause,
      d.seq AS done_seq,
      d.ts AS done_ts,
      d.wait_ns,
      d.total_ns,
      d.loops,
      d.domain,
      c.place_back,
      CASE WHEN d.exit = 5 AND c.place_back = 1 THEN 1 ELSE 0 END AS is_async
    FROM counted AS c
    CROSS JOIN wb_rule AS v
    LEFT JOIN raw_meta AS m ON m.key = 'clock_unit'
    -- After a lost event, one of an earlier call is in its place: that was
    -- before this call's entry.
    LEFT JOIN raw_balance_dirty_pages_done AS d
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
  s.seq,
  s.done_seq,
  s.done_ts,
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
  CASE s.domain WHEN 0 THEN 'global' WHEN 1 THEN 'memcg' END AS domain
FROM shared AS s;

-- @view     wb_throttle_domain
-- @summary  Which limits throttled a task whose wb belongs to a memory cgroup:
--   the machine's or the cgroup's. The event does not tell; the
--   global_dirty_state that the same call fired just before does: the machine's
--   limits threw the task's event when both see the same dirty pages and the
--   same setpoint, or nearly so (wb_rule).
-- @grain    balance_dirty_pages event of a wb that is not the root's; order seq
-- @key      seq
-- @needs    raw_balance_dirty_pages, wb_dirty_sample, wb_throttle_done,
--   wb_kernel, wb_rule
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   domain TEXT global or memcg; NULL without global_dirty_state and
--   without the call's return
-- @column   has_limit INTEGER 1: limit is that of the domain; 0: the kernel (up
--   to 6.14.1) recorded the machine's limit whatever the domain, or it is not
--   known which it was
-- @source   mm/page-writeback.c balance_dirty_pages(), domain_dirty_limits()
-- @materialize
CREATE VIEW wb_throttle_domain AS
WITH
  member AS (
    SELECT DISTINCT b.tid
    FROM raw_balance_dirty_pages AS b
    WHERE b.cgroup_ino > 1 OR b.cgroup_path <> '/'
  ),
  steps AS (
    SELECT
      b.tid,
      b.seq,
      b.cgroup_ino > 1 OR b.cgroup_path <> '/' AS is_member,
      b.dirty,
      b.setpoint,
      NULL AS state_seq
    FROM raw_balance_dirty_pages AS b
    WHERE b.tid IN (SELECT m.tid FROM member AS m)
    UNION ALL
    SELECT
      g.tid,
      g.seq,
      NULL,
      g.dirty,
      g.setpoint,
      g.seq
    FROM wb_dirty_sample AS g
    WHERE EXISTS (SELECT 1 FROM member)
      AND g.tid IN (SELECT m.tid FROM member AS m)
  ),
  paired AS (
    SELECT
      s.seq,
      s.is_member,
      s.dirty,
      s.setpoint,
      lag(s.state_seq) OVER task AS state_seq,
      lag(s.dirty) OVER task AS machine_dirty,
      lag(s.setpoint) OVER task AS machine_setpoint
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  judged AS (
    SELECT
      p.seq,
      CASE
        WHEN d.domain IS NOT NULL AND (d.is_last = 1 OR p.state_seq IS NULL)
          THEN d.domain
        WHEN p.state_seq IS NULL THEN NULL
        WHEN abs(p.setpoint - p.machine_setpoint) * v.same_state_divisor
          <= p.machine_setpoint
          AND (
            abs(p.dirty - p.machine_dirty) <= v.same_state_pages
            OR abs(p.dirty - p.machine_dirty) * v.same_state_divisor
              <= p.machine_dirty
          )
          THEN 'global'
        ELSE 'memcg'
      END AS domain
    FROM paired AS p
    CROSS JOIN wb_rule AS v
    LEFT JOIN wb_throttle_done AS d ON d.seq = p.seq
    WHERE p.is_member = 1
  )
SELECT
  j.seq,
  j.domain,
  CASE
    WHEN j.domain = 'global' OR k.version >= 6015 THEN 1
    WHEN k.version = 6014 AND k.patch >= 2 THEN 1
    ELSE 0
  END AS has_limit
FROM judged AS j
CROSS JOIN wb_kernel AS k;
