-- SPDX-License-Identifier: Apache-2.0
-- When tasks left their CPUs, why, and when they were back, by sched_switch.

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
    FROM switched!(k) AS s
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
