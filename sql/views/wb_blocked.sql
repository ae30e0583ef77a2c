-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_blocked
-- @summary  Uninterruptible sleeps of each task, measured by sched_switch.
-- @grain    sleep; order seq
-- @needs    raw_sched_switch, wb_bounds
-- @optional sched:sched_switch
-- @column   seq INTEGER of the sched_switch that took the task off its CPU
-- @column   ts INTEGER ns, when the task left the CPU
-- @column   tid INTEGER thread that sleeps
-- @column   ran_ts INTEGER ns, when it last got the CPU before; NULL = not seen
-- @column   end_ts INTEGER ns, when it ran again; the trace's end if it did not
-- @source   include/trace/events/sched.h: bit 1 of prev_state is
--   TASK_UNINTERRUPTIBLE in every kernel; TASK_KILLABLE has it too
-- @materialize
CREATE VIEW wb_blocked AS
WITH
  moves AS (
    SELECT s.prev_pid AS tid, s.seq, s.ts, s.prev_state AS left_state
    FROM raw_sched_switch AS s
    WHERE s.prev_pid <> 0
    UNION ALL
    SELECT s.next_pid, s.seq, s.ts, NULL
    FROM raw_sched_switch AS s
    WHERE s.next_pid <> 0
  ),
  paired AS (
    SELECT
      m.tid,
      m.seq,
      m.ts,
      m.left_state,
      lag(m.ts) OVER task AS ran_ts,
      lead(m.seq) OVER task AS next_seq,
      lead(m.ts) OVER task AS next_ts,
      lead(m.left_state) OVER task AS next_left_state
    FROM moves AS m
    WINDOW task AS (PARTITION BY m.tid ORDER BY m.seq)
  )
SELECT
  p.seq,
  p.ts,
  p.tid,
  p.ran_ts,
  coalesce(p.next_ts, b.last_ts) AS end_ts
FROM paired AS p
CROSS JOIN wb_bounds AS b
WHERE p.left_state & 2 = 2
  -- Two switches off the CPU in a row: the one onto it was not recorded.
  AND (p.next_seq IS NULL OR p.next_left_state IS NULL);
