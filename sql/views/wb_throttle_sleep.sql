-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_sleep
-- @summary  The sleep that followed a balance_dirty_pages event: the first
--   uninterruptible sleep of the task before its next such event.
-- @grain    event with a measured sleep; order seq
-- @needs    raw_balance_dirty_pages, wb_blocked
-- @optional sched:sched_switch
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   sleep_ts INTEGER ns, when the task left its CPU
-- @column   slept_ns INTEGER from leaving the CPU to running again
-- @materialize
CREATE VIEW wb_throttle_sleep AS
WITH
  steps AS (
    SELECT b.tid, b.seq, b.ts, 0 AS is_sleep, NULL AS end_ts
    FROM raw_balance_dirty_pages AS b
    WHERE EXISTS (SELECT 1 FROM wb_blocked)
    UNION ALL
    SELECT s.tid, s.seq, s.ts, 1, s.end_ts
    FROM wb_blocked AS s
  ),
  followed AS (
    SELECT
      s.seq,
      s.is_sleep,
      lead(s.is_sleep) OVER task AS next_is_sleep,
      lead(s.ts) OVER task AS sleep_ts,
      lead(s.end_ts) OVER task AS sleep_end_ts
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  )
SELECT f.seq, f.sleep_ts, f.sleep_end_ts - f.sleep_ts AS slept_ns
FROM followed AS f
WHERE f.is_sleep = 0 AND f.next_is_sleep = 1;
