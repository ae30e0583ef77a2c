-- SPDX-License-Identifier: Apache-2.0
-- When tasks left their CPUs, why, and when they were back, by sched_switch.

-- @view     wb_switch
-- @shared
-- @summary  Each task that left a CPU or got it.
-- @grain    task of a sched_switch; order seq
-- @optional sched:sched_switch
-- @column   tid INTEGER thread
-- @column   seq INTEGER of sched_switch
-- @column   is_on INTEGER 1: it got the CPU; 0: it left it
-- @column   left_state TEXT of one that left it: R could go on, S sleeps, D
--   blocked (uninterruptible), T stopped or traced, I a thread of the kernel
--   that has nothing to do, X ended; NULL = it got the CPU, or nothing tells
-- @source   include/trace/events/sched.h; TASK_KILLABLE has the bit of
--   TASK_UNINTERRUPTIBLE, too; without bits for tasks that sleep or end
--   prev_state is 0, with a bit above 255 for a task that was preempted
CREATE VIEW wb_switch AS
SELECT
  s.prev_pid AS tid,
  s.seq, s.ts,
  0 AS is_on,
  CASE
    WHEN s.prev_state IS NULL THEN NULL
    WHEN s.prev_state & k.dead_bits <> 0 THEN 'X'
    -- D|K of texts is TASK_KILLABLE: its 128 is the idle bit of 4.14 and later.
    WHEN s.prev_state & k.idle_bits <> 0 AND s.prev_state & 130 <> 130 THEN 'I'
    WHEN s.prev_state & 2 <> 0 THEN 'D'
    WHEN s.prev_state & 1 <> 0 THEN 'S'
    WHEN s.prev_state & 12 <> 0 THEN 'T'
    ELSE 'R'
  END AS left_state
FROM wb_units AS k
CROSS JOIN raw_sched_switch AS s
WHERE s.prev_pid <> 0
UNION ALL
SELECT s.next_pid, s.seq, s.ts, 1, NULL
FROM raw_sched_switch AS s
WHERE s.next_pid <> 0;

-- @view     wb_blocked
-- @summary  Uninterruptible sleeps of each task, measured by sched_switch.
-- @grain    sleep; order seq
-- @optional sched:sched_switch
-- @column   seq INTEGER of the sched_switch that took the task off its CPU
-- @column   ts INTEGER ns, when the task left the CPU
-- @column   tid INTEGER thread that sleeps
-- @column   ran_ts INTEGER ns, when it last got the CPU before; NULL = not seen
-- @column   end_ts INTEGER ns, when it ran again; the trace's end if it did not
-- @source   include/trace/events/sched.h
-- @materialize
CREATE VIEW wb_blocked AS
WITH
  paired AS (
    SELECT
      s.tid, s.seq, s.ts, s.left_state,
      lag(s.ts) OVER task AS ran_ts,
      lead(s.ts) OVER task AS next_ts,
      lead(s.is_on) OVER task AS next_is_on
    FROM wb_switch AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  )
SELECT
  p.seq, p.ts, p.tid, p.ran_ts,
  coalesce(p.next_ts, b.last_ts) AS end_ts
FROM paired AS p
CROSS JOIN wb_units AS b
WHERE p.left_state = 'D'
  -- Two switches off the CPU in a row: the one onto it was not recorded.
  AND coalesce(p.next_is_on, 1) = 1;
