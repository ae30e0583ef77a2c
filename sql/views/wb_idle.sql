-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_idle
-- @summary  Sleeps in which a throttled task did not want to run: interruptible
--   ones, such as those of a rate limit, of an empty pipe or of nothing to do.
-- @grain    sleep of a task that fires balance_dirty_pages; order tid, ts
-- @needs    raw_sched_switch, raw_balance_dirty_pages, wb_bounds
-- @optional sched:sched_switch
-- @column   tid INTEGER thread
-- @column   ts INTEGER ns, when it left the CPU
-- @column   end_ts INTEGER ns, when it ran again; the trace's end if it did not
-- @source   include/trace/events/sched.h: bit 0 of prev_state is
--   TASK_INTERRUPTIBLE in every kernel
-- @materialize
CREATE VIEW wb_idle AS
WITH
  dirtier AS (
    SELECT DISTINCT d.tid
    FROM raw_balance_dirty_pages AS d
    WHERE EXISTS (SELECT 1 FROM raw_sched_switch)
  ),
  moves AS (
    SELECT s.prev_pid AS tid, s.seq, s.ts, s.prev_state AS left_state
    FROM raw_sched_switch AS s
    WHERE s.prev_pid IN (SELECT d.tid FROM dirtier AS d)
    UNION ALL
    SELECT s.next_pid, s.seq, s.ts, NULL
    FROM raw_sched_switch AS s
    WHERE s.next_pid IN (SELECT d.tid FROM dirtier AS d)
  ),
  paired AS (
    SELECT
      m.tid,
      m.ts,
      m.left_state,
      lead(m.ts) OVER task AS next_ts,
      lead(m.left_state) OVER task AS next_left_state
    FROM moves AS m
    WINDOW task AS (PARTITION BY m.tid ORDER BY m.seq)
  )
SELECT p.tid, p.ts, coalesce(p.next_ts, b.last_ts) AS end_ts
FROM paired AS p
CROSS JOIN wb_bounds AS b
WHERE p.left_state & 1 = 1
  -- Two switches off the CPU in a row: the one onto it was not recorded.
  AND p.next_left_state IS NULL;
