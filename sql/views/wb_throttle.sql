-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle
-- @summary  One row for each balance_dirty_pages event: what was asked of the
--   task, what it did, and the state that it was decided on.
-- @grain    event; order seq
-- @needs    raw_balance_dirty_pages, raw_sched_switch, wb_throttle_sleep,
--   wb_throttle_domain, wb_cgroup, wb_task, wb_units, wb_bounds
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, before the sleep
-- @column   tid INTEGER thread that dirties pages
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_first INTEGER 1: first event of a call of balance_dirty_pages();
--   0: the call went round its loop again
-- @column   is_last INTEGER 1: last event of a call
-- @column   pause_ns INTEGER intended sleep; 0 or less = no sleep
-- @column   paused_ns INTEGER time spent in this call so far
-- @column   period_ns INTEGER time that the dirtied pages are worth
-- @column   think_ns INTEGER time since the scheduled end of the last pause
-- @column   next_ts INTEGER ns, the task's next event; NULL = none
-- @column   sleep_ts INTEGER ns, start of the sleep; ts where it was not
--   measured
-- @column   slept_ns INTEGER best measure of the sleep that followed; 0 = none
-- @column   slept_basis TEXT sched: between two sched_switch; paused: from the
--   next event of the call; intended: pause plus half a jiffy
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
-- @materialize
CREATE VIEW wb_throttle AS
WITH
  -- Tasks that sched_switch was recorded for.
  watched AS (
    SELECT DISTINCT s.prev_pid AS tid
    FROM raw_sched_switch AS s
  ),
  neighbours AS (
    SELECT
      b.seq,
      b.ts,
      b.tid,
      b.bdi,
      coalesce(b.cgroup_ino, c.cgroup_ino) AS cgroup_ino,
      b."limit" AS limit_pages,
      b.setpoint,
      b.dirty,
      b.wb_setpoint,
      b.wb_dirty,
      b.dirty_ratelimit,
      b.task_ratelimit,
      b.dirtied,
      b.dirtied_pause,
      b.paused,
      b.pause,
      b.period,
      b.think,
      -- A call goes round again only at task_ratelimit 0 and after a sleep,
      -- and keeps its dirtied count.
      b.paused > 0
      AND lag(b.task_ratelimit, 1, -1) OVER task = 0
      AND lag(b.pause, 1, 0) OVER task > 0
      AND lag(b.bdi, 1, '') OVER task = b.bdi
      AND lag(b.dirtied, 1, -1) OVER task = b.dirtied AS goes_on,
      b.task_ratelimit = 0
      AND b.pause > 0
      AND lead(b.paused, 1, 0) OVER task > 0
      AND lead(b.bdi, 1, '') OVER task = b.bdi
      AND lead(b.dirtied, 1, -1) OVER task = b.dirtied AS will_go_on,
      lead(b.paused) OVER task AS next_paused,
      lead(b.ts) OVER task AS next_ts
    FROM raw_balance_dirty_pages AS b
    LEFT JOIN wb_cgroup AS c ON c.path = b.cgroup_path
    WINDOW task AS (PARTITION BY b.tid ORDER BY b.seq)
  ),
  judged AS (
    SELECT
      n.*,
      -- Pause of no sleep and no cost: the kernel does not reset its count of
      -- dirtied pages, and the next event has them again.
      n.pause <= 0 AND n.period = 0 AND n.pause >= -1000
        AS is_unconsumed,
      -- The task came back at once although it had a long pause to sleep: it
      -- got EAGAIN and an io_uring worker will do it again. Clocks of guests
      -- jump by up to 14 ms, so shorter pauses are not judged.
      n.pause > 0
      AND NOT n.will_go_on
      AND n.next_ts - n.ts <= 2 * u.ms_ns
      AND n.pause * u.ms_ns - (n.next_ts - n.ts) > 16 * u.ms_ns
        AS came_back_at_once,
      -- Back before the pause was over and no sleep seen: it did not sleep.
      CASE
        WHEN s.slept_ns IS NOT NULL THEN s.slept_ns
        WHEN w.tid IS NOT NULL AND n.next_ts - n.ts < n.pause * u.ms_ns THEN 0
      END AS measured_ns,
      s.sleep_ts
    FROM neighbours AS n
    CROSS JOIN wb_units AS u
    LEFT JOIN watched AS w ON w.tid = n.tid
    LEFT JOIN wb_throttle_sleep AS s ON s.seq = n.seq
  ),
  measured AS (
    SELECT
      j.*,
      coalesce(j.came_back_at_once AND coalesce(j.measured_ns, 0) = 0, 0)
        AS is_async,
      CASE
        WHEN j.pause <= 0 THEN NULL
        WHEN j.measured_ns IS NOT NULL THEN 'sched'
        WHEN j.will_go_on AND j.next_paused >= j.paused THEN 'paused'
        ELSE 'intended'
      END AS slept_basis,
      -- Until when a sleep can have lasted at most.
      coalesce(j.next_ts, b.last_ts) - j.ts AS room_ns,
      (j.next_paused - j.paused) * u.ms_ns AS paused_step_ns,
      j.pause * u.ms_ns + coalesce(u.jiffy_ns, 0) / 2 AS intended_ns
    FROM judged AS j
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_bounds AS b
  )
SELECT
  m.seq,
  m.ts,
  m.tid,
  coalesce(t.comm, 'tid ' || m.tid) AS comm,
  t.task_id,
  m.bdi,
  m.cgroup_ino,
  CASE WHEN m.goes_on THEN 0 ELSE 1 END AS is_first,
  CASE WHEN m.will_go_on THEN 0 ELSE 1 END AS is_last,
  m.pause * u.ms_ns AS pause_ns,
  m.paused * u.ms_ns AS paused_ns,
  m.period * u.ms_ns AS period_ns,
  m.think * u.ms_ns AS think_ns,
  m.next_ts,
  coalesce(m.sleep_ts, m.ts) AS sleep_ts,
  CASE
    WHEN m.slept_basis IS NULL OR m.is_async THEN 0
    WHEN m.slept_basis = 'sched' THEN m.measured_ns
    -- The kernel's ms and the trace clock are different clocks: never longer
    -- than to the task's next event.
    WHEN m.slept_basis = 'paused' AND m.paused_step_ns < m.room_ns
      THEN m.paused_step_ns
    WHEN m.slept_basis = 'intended' AND m.intended_ns < m.room_ns
      THEN m.intended_ns
    ELSE m.room_ns
  END AS slept_ns,
  m.slept_basis,
  CASE WHEN m.is_async THEN 1 ELSE 0 END AS is_async,
  m.dirtied * u.page_bytes AS dirtied_bytes,
  CASE
    WHEN m.goes_on OR m.is_unconsumed OR m.is_async THEN 0
    ELSE m.dirtied * u.page_bytes
  END AS accounted_bytes,
  m.dirtied_pause * u.page_bytes AS dirtied_pause_bytes,
  CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END AS domain,
  CASE WHEN d.has_limit = 0 THEN NULL ELSE m.limit_pages * u.page_bytes END
    AS limit_bytes,
  m.setpoint * u.page_bytes AS setpoint_bytes,
  m.dirty * u.page_bytes AS dirty_bytes,
  CASE
    -- setpoint * wb_thresh, in 32 bits.
    WHEN u.long_bytes = 4 AND m.setpoint * m.limit_pages >= 4294967296 THEN NULL
    ELSE m.wb_setpoint * u.page_bytes
  END AS wb_setpoint_bytes,
  m.wb_dirty * u.page_bytes AS wb_dirty_bytes,
  m.dirty_ratelimit * u.kib_bytes AS dirty_ratelimit_bytes_per_s,
  m.task_ratelimit * u.kib_bytes AS task_ratelimit_bytes_per_s
FROM measured AS m
CROSS JOIN wb_units AS u
LEFT JOIN wb_throttle_domain AS d ON m.cgroup_ino <> 1 AND d.seq = m.seq
LEFT JOIN wb_task AS t
  ON t.tid = m.tid AND m.seq >= t.from_seq AND m.seq < t.until_seq;
