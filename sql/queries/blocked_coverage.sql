-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    blocked_coverage
-- @title    How much of the blocked time is explained
-- @summary  Time that each task slept uninterruptibly, and how much of that the
--   waits of `stalls` explain.
-- @read     blocked is what sched_switch says, in sleeps from 1 ms on;
--   explained is the part of it that is a known wait. The rest are the rows of
--   `stalls` of kind "blocked outside throttling": low coverage means that an
--   event is missing that would tell why, such as those of the file system.
-- @filters  range, tid, task
-- @grain    task under a name; order unexplained_ns descending
-- @events   sched:sched_switch|wbscope:blocked
-- @column   comm TEXT its name; as in throttle_by_task
-- @column   sleeps_count INTEGER uninterruptible sleeps from 1 ms on
-- @column   blocked_ns INTEGER their time
-- @column   explained_ns INTEGER of that, in a known wait
-- @column   unexplained_ns INTEGER the rest
-- @column   waits_ns INTEGER its waits of any cause: no shorter than blocked,
--   longer where it also ran, as in reclaim
-- @column   coverage_ratio REAL explained over blocked
-- @metric   unexplained_ns neutral: time a task was blocked for reasons that no
--   recorded event shows
WITH
  slept AS (
    SELECT
      t.task_id, t.tid, t.comm,
      count(*) AS sleeps_count,
      sum(s.end_ts - s.ts) AS blocked_ns
    FROM wb_wait_end AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_rule AS v
    JOIN wb_task AS t ON task_of!(t, s)
    WHERE s.end_ts - s.ts >= v.call_least_ns
      AND in_time!(s.ts, b)
    GROUP BY t.task_id, t.tid, t.comm
  ),
  waited AS (
    SELECT
      w.task_id,
      sum(w.dur) AS waits_ns,
      sum(
        CASE WHEN w.kind = 'blocked outside throttling' AND w.basis = 'sched'
          THEN w.dur
        END
      ) AS dur
    FROM wb_stall AS w
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(w.ts, b)
    GROUP BY w.task_id
  )
SELECT
  k.tid, k.comm, k.sleeps_count, k.blocked_ns,
  k.blocked_ns - coalesce(u.dur, 0) AS explained_ns,
  coalesce(u.dur, 0) AS unexplained_ns,
  coalesce(u.waits_ns, 0) AS waits_ns,
  1.0 * (k.blocked_ns - coalesce(u.dur, 0)) / k.blocked_ns AS coverage_ratio
FROM slept AS k
CROSS JOIN wb_params AS p
LEFT JOIN waited AS u ON u.task_id = k.task_id
WHERE of_task!(k, p)
ORDER BY unexplained_ns DESC, k.blocked_ns DESC, k.tid, k.task_id;
