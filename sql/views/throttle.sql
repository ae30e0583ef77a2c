-- SPDX-License-Identifier: Apache-2.0
-- What each balance_dirty_pages event says, and what it cost its task.

-- @view     wb_throttle
-- @summary  One row for each balance_dirty_pages event: what was asked of the
--   task, what it did, and the state that it was decided on.
-- @grain    event; order seq
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch, writeback:balance_dirty_pages_done,
--   wbscope:balance_dirty_pages_return
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, before the sleep
-- @column   tid INTEGER thread that dirties pages
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_step INTEGER 1: it charged pages, was slept after or went round
--   the loop; NULL = it did nothing, as most events of a busy run. A question
--   about sleeps and charged pages is fast with WHERE is_step = 1
-- @column   is_first INTEGER 1: first event of a call of balance_dirty_pages();
--   0: the call went round its loop again
-- @column   is_last INTEGER 1: last event of a call
-- @column   pause_ns INTEGER intended sleep; 0 or less = no sleep
-- @column   paused_ns INTEGER time spent in this call so far
-- @column   period_ns INTEGER time that the dirtied pages are worth
-- @column   think_ns INTEGER time since the scheduled end of the last pause
-- @column   sleep_ts INTEGER ns, start of the sleep; ts where it was not
--   measured
-- @column   slept_ns INTEGER best measure of the sleep that followed; 0 = none
-- @column   is_async INTEGER 1: the pause was not slept (io_uring NOWAIT)
-- @column   dirtied_bytes INTEGER as recorded; repeats, so never add it up
-- @column   accounted_bytes INTEGER bytes that this event adds to what its task
--   dirtied; adding these up gives a lower bound (pages that an exited task
--   left on the CPU are charged to the next one)
-- @column   dirtied_pause_bytes INTEGER poll threshold that was in force
-- @column   domain TEXT whose limits throttled: global or memcg; NULL = unknown
-- @column   limit_bytes INTEGER hard limit of the domain; NULL where a memory
--   cgroup throttled up to 6.14.1, which recorded the machine's limit
-- @column   setpoint_bytes INTEGER where the dirty pages should settle
-- @column   dirty_bytes INTEGER dirty and writeback pages of the domain
-- @column   wb_setpoint_bytes INTEGER this wb's share of the setpoint; NULL on
--   32-bit kernels with limits so high that the kernel's product wraps
-- @column   wb_dirty_bytes INTEGER dirty and writeback pages of this wb
-- @column   dirty_ratelimit_bytes_per_s INTEGER base rate of the wb
-- @column   task_ratelimit_bytes_per_s INTEGER rate that the task may dirty at
-- @source   mm/page-writeback.c balance_dirty_pages(), 3.2 to 7.x
CREATE VIEW wb_throttle AS
SELECT
  r.seq, r.ts, r.tid,
  -- Names take longer to find than all the rest: only where they are asked for.
  coalesce(
    (
      SELECT k.comm
      FROM wb_task AS k
      WHERE task_of!(k, r)
    ),
    'tid ' || r.tid
  ) AS comm,
  coalesce(
    c.task_id,
    (
      SELECT k.task_id
      FROM wb_task AS k
      WHERE task_of!(k, r)
    )
  ) AS task_id,
  r.bdi,
  coalesce(
    r.cgroup_ino,
    (SELECT g.cgroup_ino FROM wb_cgroup AS g WHERE g.path = r.cgroup_path)
  ) AS cgroup_ino,
  c.is_step,
  coalesce(c.is_first, 1) AS is_first,
  coalesce(c.is_last, 1) AS is_last,
  r.pause * u.ms_ns AS pause_ns,
  r.paused * u.ms_ns AS paused_ns,
  r.period * u.ms_ns AS period_ns,
  r.think * u.ms_ns AS think_ns,
  coalesce(c.sleep_ts, r.ts) AS sleep_ts,
  coalesce(c.slept_ns, 0) AS slept_ns,
  c.slept_basis, c.call_ns,
  coalesce(c.is_async, 0) AS is_async,
  r.dirtied * u.page_bytes AS dirtied_bytes,
  coalesce(c.accounted_bytes, 0) AS accounted_bytes,
  r.dirtied_pause * u.page_bytes AS dirtied_pause_bytes,
  CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END AS domain,
  CASE WHEN d.has_limit = 0 THEN NULL ELSE r."limit" * u.page_bytes END
    AS limit_bytes,
  r.setpoint * u.page_bytes AS setpoint_bytes,
  r.dirty * u.page_bytes AS dirty_bytes,
  wb_setpoint!(r, u) * u.page_bytes AS wb_setpoint_bytes,
  r.wb_dirty * u.page_bytes AS wb_dirty_bytes,
  r.dirty_ratelimit * u.kib_bytes AS dirty_ratelimit_bytes_per_s,
  r.task_ratelimit * u.kib_bytes AS task_ratelimit_bytes_per_s
FROM raw_balance_dirty_pages AS r
CROSS JOIN wb_units AS u
LEFT JOIN wb_throttle_domain AS d ON d.seq = r.seq
LEFT JOIN _throttle_charge AS c ON c.seq = r.seq;

-- @view     wb_throttle_pause
-- @summary  What each event of wb_throttle with a pause cost its task: the
--   sleep, and the pages charged. A verdict stands on them, and a busy run has
--   many times as many that only charge pages.
-- @grain    event with a pause; order seq
-- @key      seq
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch, writeback:balance_dirty_pages_done,
--   wbscope:balance_dirty_pages_return
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, before the sleep
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   call_seq INTEGER of the first event with a pause of the same call
-- @column   is_first INTEGER as in wb_throttle
-- @column   is_last INTEGER as in wb_throttle
-- @column   pause_ns INTEGER intended sleep
-- @column   paused_ns INTEGER as in wb_throttle
-- @column   sleep_ts INTEGER ns, start of the sleep; ts where not measured;
--   before ts where events of the call were lost
-- @column   slept_ns INTEGER of the whole sleep
-- @column   slept_basis TEXT measured: by the kernel, told when the call
--   returned; probe: between the probes on its entry and return; sched: between
--   two sched_switch; paused: from the next event of the call; intended: pause
--   plus half a jiffy
-- @column   call_ns INTEGER in the last event of a call that is a step: how
--   long the call took; without its return: the time in it so far and the sleep
-- @column   is_async INTEGER as in wb_throttle
-- @column   accounted_bytes INTEGER what it adds to the task's dirtied bytes
-- @column   done_seq INTEGER of the return of its call; NULL = not recorded
-- @source   mm/page-writeback.c balance_dirty_pages(), 3.2 to 7.x
-- @materialize
-- @cost     160
CREATE VIEW wb_throttle_pause AS
WITH
  -- Tasks that sched_switch was recorded for.
  watched AS (
    SELECT DISTINCT s.prev_pid AS tid
    FROM raw_sched_switch AS s
  ),
  step AS (
    SELECT
      c.seq, c.ts, c.tid, c.bdi, c.cgroup_ino, c.cgroup_path, c.pause, c.paused,
      c.dirtied,
      n.ts AS next_ts,
      n.paused AS next_paused,
      goes_on!(d, p, c) AS goes_on,
      CASE
        WHEN d.done_seq IS NOT NULL THEN 1 - d.is_last
        WHEN d.precedes_done = 1 THEN 0
        ELSE coalesce(goes_round!(c, n), 0)
      END AS will_go_on,
      d.done_seq, d.done_ts,
      d.is_async AS is_done_async,
      d.wait_ns, d.wait_ts, d.call_ns,
      d.basis AS done_basis
    FROM raw_balance_dirty_pages AS c
    LEFT JOIN raw_balance_dirty_pages AS n ON n.prev_seq = c.seq
    LEFT JOIN raw_balance_dirty_pages AS p
      ON c.paused > 0 AND p.seq = c.prev_seq
    LEFT JOIN _throttle_done AS d ON d.seq = c.seq
    WHERE is_step!(c) AND c.pause > 0
  ),
  judged AS (
    SELECT
      n.*,
      u.ms_ns, u.page_bytes, u.last_ts,
      u.second_ns / nullif(CAST(h.value AS INTEGER), 0) AS jiffy_ns,
      -- The task came back at once although it had a long pause to sleep: it
      -- got EAGAIN and an io_uring worker will do it again.
      n.done_ts IS NULL
      AND n.will_go_on = 0
      AND n.next_ts - n.ts BETWEEN 0 AND v.came_back_ns
      AND n.pause * u.ms_ns - (n.next_ts - n.ts) > v.unslept_least_ns
        AS came_back_at_once,
      -- Back before the pause was over and no sleep seen: it did not sleep.
      CASE
        WHEN s.slept_ns IS NOT NULL THEN s.slept_ns
        WHEN w.tid IS NOT NULL
          AND n.next_ts >= n.ts
          AND n.next_ts - n.ts < n.pause * u.ms_ns
          THEN 0
      END AS measured_ns,
      s.sleep_ts
    FROM wb_units AS u
    CROSS JOIN run_summary AS h ON h.key = 'hz'
    CROSS JOIN wb_rule AS v
    CROSS JOIN step AS n
    LEFT JOIN watched AS w ON w.tid = n.tid
    LEFT JOIN _throttle_sleep AS s ON s.seq = n.seq
    -- No limit; without, each case below would be written out in the next.
    LIMIT -1
  ),
  measured AS (
    SELECT
      j.*,
      CASE
        WHEN j.is_done_async = 1 THEN 1
        WHEN j.came_back_at_once AND coalesce(j.measured_ns, 0) = 0 THEN 1
        ELSE 0
      END AS is_async,
      CASE
        WHEN j.wait_ns IS NOT NULL THEN j.done_basis
        WHEN j.measured_ns IS NOT NULL THEN 'sched'
        WHEN j.will_go_on = 1 AND j.next_paused >= j.paused THEN 'paused'
        ELSE 'intended'
      END AS slept_basis,
      -- Until when a sleep can have lasted at most.
      CASE
        WHEN j.will_go_on = 0 AND j.done_ts >= j.ts THEN j.done_ts
        WHEN j.next_ts >= j.ts THEN j.next_ts
        ELSE j.last_ts
      END - j.ts AS room_ns,
      (j.next_paused - j.paused) * j.ms_ns AS paused_step_ns,
      j.pause * j.ms_ns + coalesce(j.jiffy_ns, 0) / 2 AS intended_ns
    FROM judged AS j
  ),
  slept AS (
    SELECT
      m.*,
      CASE
        WHEN m.is_async = 1 THEN 0
        WHEN m.slept_basis IN ('measured', 'probe') THEN m.wait_ns
        WHEN m.slept_basis = 'sched' THEN m.measured_ns
        -- The kernel's ms and the trace clock are different clocks: never
        -- longer than to the task's next event.
        WHEN m.slept_basis = 'paused' AND m.paused_step_ns < m.room_ns
          THEN m.paused_step_ns
        WHEN m.slept_basis = 'intended' AND m.intended_ns < m.room_ns
          THEN m.intended_ns
        ELSE m.room_ns
      END AS slept_ns
    FROM measured AS m
  )
SELECT
  m.seq, m.ts, m.tid, k.task_id, m.bdi,
  coalesce(m.cgroup_ino, g.cgroup_ino) AS cgroup_ino,
  coalesce(
    max(CASE m.goes_on WHEN 0 THEN m.seq END) OVER (
      PARTITION BY m.tid ORDER BY m.seq ROWS UNBOUNDED PRECEDING
    ),
    m.seq
  ) AS call_seq,
  1 - m.goes_on AS is_first,
  1 - m.will_go_on AS is_last,
  m.pause * m.ms_ns AS pause_ns,
  m.paused * m.ms_ns AS paused_ns,
  -- A measured wait has more in it than the sleep, but no other event.
  CASE
    WHEN m.wait_ns IS NULL THEN coalesce(m.sleep_ts, m.ts)
    WHEN m.wait_ts IS NOT NULL THEN m.wait_ts
    WHEN m.slept_ns > m.room_ns THEN m.ts
    WHEN m.sleep_ts + m.slept_ns > m.ts + m.room_ns
      THEN m.ts + m.room_ns - m.slept_ns
    ELSE coalesce(m.sleep_ts, m.ts)
  END AS sleep_ts,
  m.slept_ns, m.slept_basis,
  CASE
    WHEN m.will_go_on = 0
      THEN coalesce(m.call_ns, m.paused * m.ms_ns + m.slept_ns)
  END AS call_ns,
  m.is_async,
  CASE
    WHEN m.goes_on = 1 OR m.is_async = 1 THEN 0
    ELSE m.dirtied * m.page_bytes
  END AS accounted_bytes,
  m.done_seq
FROM slept AS m
LEFT JOIN wb_cgroup AS g ON g.path = m.cgroup_path
LEFT JOIN wb_task AS k ON task_of!(k, m);

-- @view     wb_throttle_domain
-- @shared
-- @summary  Which limits throttled a task whose wb belongs to a memory cgroup:
--   the machine's or the cgroup's. The event does not tell; the
--   global_dirty_state that the same call fired just before does: the machine's
--   limits threw the task's event when both see the same dirty pages and the
--   same setpoint, or nearly so (wb_rule).
-- @grain    balance_dirty_pages event of a wb that is not the root's; order seq
-- @key      seq
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
  steps AS (
    SELECT
      b.tid, b.seq,
      b.cgroup_ino > 1 OR b.cgroup_path <> '/' AS is_member,
      b.dirty, b.setpoint,
      NULL AS recorded_setpoint,
      NULL AS state_seq
    FROM raw_balance_dirty_pages AS b
    WHERE b.tid IN (SELECT m.tid FROM _throttle_member AS m)
    UNION ALL
    SELECT
      g.tid, g.seq, NULL,
      dirty_pages!(g),
      (hard_limit!(g) + (g.thresh + g.bg_thresh) / 2) / 2,
      -- What balance_dirty_pages tells up to 6.14.1, below the one that is in
      -- force while dirty_limit is below thresh, which it follows in steps.
      (g.dirty_limit + (g.thresh + g.bg_thresh) / 2) / 2,
      g.seq
    -- Nothing is read where there is none.
    FROM (SELECT 1 FROM _throttle_member LIMIT 1) AS o
    CROSS JOIN raw_global_dirty_state AS g
    WHERE g.tid IN (SELECT m.tid FROM _throttle_member AS m)
  ),
  paired AS (
    SELECT
      s.seq, s.is_member, s.dirty, s.setpoint,
      lag(s.state_seq) OVER task AS state_seq,
      lag(s.dirty) OVER task AS machine_dirty,
      lag(s.setpoint) OVER task AS machine_setpoint,
      lag(s.recorded_setpoint) OVER task AS recorded_setpoint
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  kernel AS (
    SELECT
      CASE
        WHEN k.version >= 6015 OR (k.version = 6014 AND k.patch >= 2) THEN 1
        ELSE 0
      END AS has_limit
    FROM wb_units AS k
  ),
  judged AS (
    SELECT
      p.seq, k.has_limit,
      CASE
        WHEN d.domain IS NOT NULL AND (d.is_last = 1 OR p.state_seq IS NULL)
          THEN d.domain
        WHEN p.state_seq IS NULL THEN NULL
        WHEN (
            abs(p.setpoint - p.machine_setpoint) * v.same_state_divisor
              <= p.machine_setpoint
            OR (
              k.has_limit = 0
              AND abs(p.setpoint - p.recorded_setpoint) * v.same_state_divisor
                <= p.recorded_setpoint
            )
          )
          AND (
            abs(p.dirty - p.machine_dirty) <= v.same_state_pages
            OR abs(p.dirty - p.machine_dirty) * v.same_state_divisor
              <= p.machine_dirty
          )
          THEN 'global'
        ELSE 'memcg'
      END AS domain
    FROM paired AS p
    CROSS JOIN kernel AS k
    CROSS JOIN wb_rule AS v
    LEFT JOIN _throttle_done AS d ON d.seq = p.seq
    WHERE p.is_member = 1
  )
SELECT
  j.seq, j.domain,
  CASE WHEN j.domain = 'global' THEN 1 ELSE j.has_limit END AS has_limit
FROM judged AS j;

-- @view     _throttle_charge
-- @summary  What each balance_dirty_pages event that did something cost its
--   task: the pages charged and the sleep.
-- @grain    event that charged pages, slept or went round; order seq
-- @key      seq
-- @column   is_step INTEGER 1
-- @column   pause_ns INTEGER intended sleep; 0 or less = no sleep
-- @source   mm/page-writeback.c balance_dirty_pages(), 3.2 to 7.x
-- @materialize
-- @cost     290
CREATE VIEW _throttle_charge AS
WITH
  -- Without a pause.
  rest AS (
    SELECT
      c.seq, c.ts, c.tid, c.bdi, c.cgroup_ino, c.cgroup_path, c.pause, c.paused,
      goes_on!(d, p, c) AS goes_on,
      CASE WHEN d.done_seq IS NULL THEN 1 ELSE d.is_last END AS is_last,
      d.is_async AS is_done_async,
      d.call_ns,
      -- Of no cost: the kernel does not reset its count of dirtied pages, and
      -- the next event has them again.
      CASE WHEN c.period = 0 AND c.pause >= -1000 THEN 0 ELSE c.dirtied END
        AS charged
    FROM raw_balance_dirty_pages AS c
    LEFT JOIN raw_balance_dirty_pages AS p
      ON c.paused > 0 AND p.seq = c.prev_seq
    LEFT JOIN _throttle_done AS d ON d.seq = c.seq
    WHERE is_step!(c) AND (c.pause <= 0 OR c.pause IS NULL)
  )
SELECT
  p.seq, p.ts, p.tid, p.task_id, p.bdi, p.cgroup_ino,
  1 AS is_step,
  p.is_first, p.is_last, p.pause_ns, p.paused_ns, p.sleep_ts, p.slept_ns,
  p.slept_basis, p.call_ns, p.is_async, p.accounted_bytes
FROM wb_throttle_pause AS p
UNION ALL
SELECT
  n.seq, n.ts, n.tid, k.task_id, n.bdi,
  coalesce(n.cgroup_ino, g.cgroup_ino),
  1,
  1 - n.goes_on,
  n.is_last,
  n.pause * u.ms_ns,
  n.paused * u.ms_ns,
  n.ts, 0, NULL,
  CASE WHEN n.is_last = 1 THEN coalesce(n.call_ns, n.paused * u.ms_ns) END,
  coalesce(n.is_done_async, 0),
  CASE
    WHEN n.goes_on = 1 OR n.is_done_async = 1 THEN 0
    ELSE n.charged * u.page_bytes
  END
FROM wb_units AS u
CROSS JOIN rest AS n
LEFT JOIN wb_cgroup AS g ON g.path = n.cgroup_path
LEFT JOIN wb_task AS k ON task_of!(k, n);

-- @view     _throttle_done
-- @summary  The call of balance_dirty_pages() that each event was fired in, as
--   its return proves it (balance_dirty_pages_done of a patched kernel, else
--   the probes): its last `loops` events before it. The call's measured wait is
--   shared out to those of its events that a sleep followed, by the time to the
--   next event or to the return; the shares add up to it. Empty without either.
-- @grain    event; order seq
-- @key      seq
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
CREATE VIEW _throttle_done AS
WITH
  returned AS (
    SELECT d.seq, d.ts, d.tid, d.bdi, d.wait_ns, d.total_ns, d.loops,
      d.exit = 5 AS is_async, d.domain, 'measured' AS basis
    FROM raw_balance_dirty_pages_done AS d
    UNION ALL
    SELECT p.end_seq, p.end_ts, p.tid, p.device,
      p.is_paused * (p.end_ts - p.ts), p.end_ts - p.ts, p.events_count,
      p.is_async, NULL, 'probe'
    FROM wb_call AS p
    WHERE p.end_ts >= p.ts
      AND p.events_count > 0
      AND NOT EXISTS (SELECT 1 FROM raw_balance_dirty_pages_done)
      -- Other clocks do not count ns.
      AND NOT EXISTS (
        SELECT 1
        FROM raw_meta AS m
        WHERE m.key = 'clock_unit' AND m.value <> 'ns'
      )
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

-- @view     _throttle_sleep
-- @summary  The sleep that followed a balance_dirty_pages event. The task runs
--   on to schedule() without blocking, so it is the first uninterruptible sleep
--   that starts soon after the event (wb_rule.run_slack_ns). A block plug may
--   be flushed first and sleep too: the first sleep of at least half the pause
--   is taken, or the first at all.
-- @grain    event with a measured sleep; order seq
-- @key      seq
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   sleep_ts INTEGER ns, when the task left its CPU
-- @column   slept_ns INTEGER from leaving the CPU to running again
-- @source   mm/page-writeback.c balance_dirty_pages(); kernel/sched/core.c
--   io_schedule_prepare()
-- @materialize
CREATE VIEW _throttle_sleep AS
WITH
  steps AS (
    SELECT
      b.tid, b.seq,
      b.seq AS event_seq,
      NULL AS sleep_ts,
      NULL AS ran_ts,
      NULL AS end_ts
    -- Nothing is read where there is no sleep.
    FROM (SELECT 1 FROM wb_wait_end LIMIT 1) AS o
    CROSS JOIN raw_balance_dirty_pages AS b
    WHERE is_step!(b) AND b.pause > 0
    UNION ALL
    SELECT s.tid, s.seq, NULL, s.ts, s.ran_ts, s.end_ts
    FROM wb_wait_end AS s
  ),
  owned AS (
    SELECT
      s.seq, s.sleep_ts, s.ran_ts, s.end_ts,
      max(s.event_seq) OVER (
        PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
      ) AS owner_seq
    FROM steps AS s
  ),
  candidate AS (
    SELECT
      o.owner_seq, o.sleep_ts,
      o.end_ts - o.sleep_ts AS slept_ns,
      row_number() OVER (
        PARTITION BY o.owner_seq
        ORDER BY
          CASE
            WHEN (o.end_ts - o.sleep_ts) * 2 >= b.pause * u.ms_ns THEN 0
            ELSE 1
          END,
          o.seq
      ) AS place
    FROM owned AS o
    JOIN raw_balance_dirty_pages AS b ON b.seq = o.owner_seq
    LEFT JOIN raw_balance_dirty_pages AS n ON n.prev_seq = b.seq
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
    WHERE o.sleep_ts IS NOT NULL
      AND (n.seq IS NULL OR o.seq < n.seq)
      AND o.sleep_ts
        - CASE WHEN o.ran_ts > b.ts THEN o.ran_ts ELSE b.ts END
        <= v.run_slack_ns
  )
SELECT c.owner_seq AS seq, c.sleep_ts, c.slept_ns
FROM candidate AS c
WHERE c.place = 1;

-- @view     _throttle_member
-- @summary  Tasks that dirtied pages of a memory cgroup other than the root.
-- @grain    task; order tid
-- @key      tid
-- @column   tid INTEGER thread
-- @materialize
CREATE VIEW _throttle_member AS
WITH
  -- Most tasks write to one wb: the index of ingest tells which that is, by the
  -- first and the last of a task's events in its order.
  ends AS MATERIALIZED (
    SELECT
      e.tid,
      low_wb!(e) AS low_seq,
      high_wb!(e) AS high_seq
    FROM raw_event_task AS e
    WHERE substr(e.event, instr(e.event, ':') + 1) = 'balance_dirty_pages'
  )
SELECT e.tid
FROM ends AS e
CROSS JOIN raw_balance_dirty_pages AS l ON l.seq = e.low_seq
CROSS JOIN raw_balance_dirty_pages AS h ON h.seq = e.high_seq
WHERE l.cgroup_ino > 1
  OR h.cgroup_ino > 1
  OR (
    l.bdi <> h.bdi
    AND EXISTS (
      SELECT 1
      FROM raw_balance_dirty_pages AS b
      WHERE b.tid = e.tid AND b.cgroup_ino > 1
    )
  )
UNION
SELECT b.tid
FROM raw_balance_dirty_pages AS b
WHERE b.cgroup_path <> '/';
