-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_charge
-- @summary  What each balance_dirty_pages event that did something cost its
--   task: the pages charged and the sleep.
-- @grain    event of wb_throttle_step; order seq
-- @key      seq
-- @needs    raw_sched_switch, wb_throttle_step,
--   wb_throttle_sleep, wb_task, wb_cgroup, wb_hz, wb_units, wb_bounds
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch, writeback:balance_dirty_pages_done
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, before the sleep
-- @column   tid INTEGER thread
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_first INTEGER 1: first event of a call of balance_dirty_pages()
-- @column   is_last INTEGER 1: last event of a call
-- @column   pause_ns INTEGER intended sleep; 0 or less = no sleep
-- @column   paused_ns INTEGER time spent in this call so far
-- @column   sleep_ts INTEGER ns, start of the sleep; ts where not measured;
--   before ts where events of the call were lost
-- @column   slept_ns INTEGER best measure of the sleep that followed; 0 = none
-- @column   slept_basis TEXT measured: by the kernel, told when the call
--   returned; sched: between two sched_switch; paused: from the next event of
--   the call; intended: pause plus half a jiffy
-- @column   call_ns INTEGER in the last event of a call: how long the call
--   took; without its return: the time in it so far and the sleep
-- @column   is_async INTEGER 1: the pause was not slept (io_uring NOWAIT)
-- @column   accounted_bytes INTEGER what it adds to the task's dirtied bytes
-- @source   mm/page-writeback.c balance_dirty_pages(), 3.2 to 7.x
-- @materialize
CREATE VIEW wb_throttle_charge AS
WITH
  -- Tasks that sched_switch was recorded for.
  watched AS (
    SELECT DISTINCT s.prev_pid AS tid
    FROM raw_sched_switch AS s
  ),
  judged AS (
    SELECT
      n.*,
      -- The task came back at once although it had a long pause to sleep: it
      -- got EAGAIN and an io_uring worker will do it again. Clocks of guests
      -- jump by up to 14 ms, so shorter pauses are not judged.
      n.pause > 0
      AND n.done_ts IS NULL
      AND n.will_go_on = 0
      AND n.next_ts - n.ts BETWEEN 0 AND 2 * u.ms_ns
      AND n.pause * u.ms_ns - (n.next_ts - n.ts) > 16 * u.ms_ns
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
    FROM wb_throttle_step AS n
    CROSS JOIN wb_units AS u
    LEFT JOIN watched AS w ON w.tid = n.tid
    LEFT JOIN wb_throttle_sleep AS s ON s.seq = n.seq
  ),
  measured AS (
    SELECT
      j.*,
      coalesce(j.is_done_async, 0) = 1
      OR coalesce(j.came_back_at_once AND coalesce(j.measured_ns, 0) = 0, 0)
        AS is_async,
      CASE
        WHEN j.pause > 0 THEN
          CASE
            WHEN j.wait_ns IS NOT NULL THEN 'measured'
            WHEN j.measured_ns IS NOT NULL THEN 'sched'
            WHEN j.will_go_on = 1 AND j.next_paused >= j.paused THEN 'paused'
            ELSE 'intended'
          END
      END AS slept_basis,
      -- Until when a sleep can have lasted at most.
      CASE
        WHEN j.will_go_on = 0 AND j.done_ts >= j.ts THEN j.done_ts
        WHEN j.next_ts >= j.ts THEN j.next_ts
        ELSE b.last_ts
      END - j.ts AS room_ns,
      (j.next_paused - j.paused) * u.ms_ns AS paused_step_ns,
      j.pause * u.ms_ns + coalesce(h.jiffy_ns, 0) / 2 AS intended_ns
    FROM judged AS j
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_hz AS h
    CROSS JOIN wb_bounds AS b
  ),
  slept AS (
    SELECT
      m.*,
      CASE
        WHEN m.slept_basis IS NULL OR m.is_async THEN 0
        WHEN m.slept_basis = 'measured' THEN m.wait_ns
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
  m.seq,
  m.ts,
  m.tid,
  k.task_id,
  m.bdi,
  coalesce(m.cgroup_ino, g.cgroup_ino) AS cgroup_ino,
  1 - m.goes_on AS is_first,
  1 - m.will_go_on AS is_last,
  m.pause * u.ms_ns AS pause_ns,
  m.paused * u.ms_ns AS paused_ns,
  -- A measured wait has more in it than the sleep, but no other event.
  CASE
    WHEN m.slept_basis = 'measured' AND m.wait_ts IS NOT NULL THEN m.wait_ts
    WHEN m.slept_basis = 'measured' AND m.slept_ns > m.room_ns THEN m.ts
    WHEN m.slept_basis = 'measured'
      AND m.sleep_ts + m.slept_ns > m.ts + m.room_ns
      THEN m.ts + m.room_ns - m.slept_ns
    ELSE coalesce(m.sleep_ts, m.ts)
  END AS sleep_ts,
  m.slept_ns,
  m.slept_basis,
  CASE
    WHEN m.will_go_on = 0
      THEN coalesce(m.call_ns, m.paused * u.ms_ns + m.slept_ns)
  END AS call_ns,
  CASE WHEN m.is_async THEN 1 ELSE 0 END AS is_async,
  CASE
    WHEN m.goes_on = 1 OR m.is_charged = 0 OR m.is_async THEN 0
    ELSE m.dirtied * u.page_bytes
  END AS accounted_bytes
FROM slept AS m
CROSS JOIN wb_units AS u
LEFT JOIN wb_cgroup AS g ON g.path = m.cgroup_path
LEFT JOIN wb_task AS k
  ON k.tid = m.tid AND m.seq >= k.from_seq AND m.seq < k.until_seq;
