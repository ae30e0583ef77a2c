-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_sleep
-- @summary  The sleep that followed a balance_dirty_pages event. The task runs
--   on to schedule() without blocking, so it is the first uninterruptible sleep
--   that starts within 20 ms of running after the event. A block plug may be
--   flushed first and sleep too: the first sleep of at least half the pause is
--   taken, or the first at all.
-- @grain    event with a measured sleep; order seq
-- @key      seq
-- @needs    wb_throttle_step, wb_blocked, wb_units
-- @optional sched:sched_switch
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   sleep_ts INTEGER ns, when the task left its CPU
-- @column   slept_ns INTEGER from leaving the CPU to running again
-- @source   mm/page-writeback.c balance_dirty_pages(); kernel/sched/core.c
--   io_schedule_prepare()
-- @materialize
CREATE VIEW wb_throttle_sleep AS
WITH
  steps AS (
    SELECT
      b.tid,
      b.seq,
      b.seq AS event_seq,
      NULL AS sleep_ts,
      NULL AS ran_ts,
      NULL AS end_ts
    FROM wb_throttle_step AS b
    WHERE b.pause > 0 AND EXISTS (SELECT 1 FROM wb_blocked)
    UNION ALL
    SELECT s.tid, s.seq, NULL, s.ts, s.ran_ts, s.end_ts
    FROM wb_blocked AS s
  ),
  owned AS (
    SELECT
      s.seq,
      s.sleep_ts,
      s.ran_ts,
      s.end_ts,
      max(s.event_seq) OVER (
        PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING
      ) AS owner_seq
    FROM steps AS s
  ),
  candidate AS (
    SELECT
      o.owner_seq,
      o.sleep_ts,
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
    JOIN wb_throttle_step AS b ON b.seq = o.owner_seq
    CROSS JOIN wb_units AS u
    WHERE o.sleep_ts IS NOT NULL
      AND (b.next_seq IS NULL OR o.seq < b.next_seq)
      AND o.sleep_ts
        - CASE WHEN o.ran_ts > b.ts THEN o.ran_ts ELSE b.ts END
        <= 20 * u.ms_ns
  )
SELECT c.owner_seq AS seq, c.sleep_ts, c.slept_ns
FROM candidate AS c
WHERE c.place = 1;
