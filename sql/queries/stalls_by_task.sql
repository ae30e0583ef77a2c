-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    stalls_by_task
-- @title    Where tasks waited, and why
-- @order    15
-- @summary  Waits of each task by kind and cause: how many, how long, and the
--   longest.
-- @read     The first row is what cost a task most. Times are without double
--   counting: a wait inside another one counts for the inner one only. `query
--   stalls` lists the waits one by one and, with --explain, why.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    task under a name, kind, cause; order total_ns descending
-- @first    total_ns, stalls_count, max_ns
-- @events   as stalls
-- @optional as stalls
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   kind TEXT as in stalls
-- @column   cause TEXT as in stalls
-- @column   stalls_count INTEGER waits
-- @column   total_ns INTEGER sum of their own times
-- @column   max_ns INTEGER longest own time
-- @column   p99_ns INTEGER of own times, nearest rank
-- @column   unmeasured_count INTEGER of them, waits whose end no event tells
-- @metric   total_ns lower: time a task was blocked for this reason, all its
--   waits
-- @metric   max_ns lower: the longest single wait for this reason
-- @metric   p99_ns lower: 99th percentile of the waits for this reason
-- @cost     150
WITH
  chosen AS (
    SELECT s.task_id, s.tid, s.comm, s.kind, s.cause, s.dur
    FROM wb_stall AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(s.ts, b)
      AND asked!(s, p)
  ),
  ranked AS (
    SELECT
      c.*,
      row_number() OVER (
        PARTITION BY c.tid, c.task_id, c.kind, c.cause, c.dur IS NULL
        ORDER BY c.dur
      ) AS place,
      count(c.dur) OVER (PARTITION BY c.tid, c.task_id, c.kind, c.cause)
        AS measured_count
    FROM chosen AS c
  )
SELECT
  r.tid, r.comm, r.kind, r.cause,
  count(*) AS stalls_count,
  sum(r.dur) AS total_ns,
  max(r.dur) AS max_ns,
  max(CASE WHEN r.place = rank_of!(99, r.measured_count) THEN r.dur END)
    AS p99_ns,
  count(*) - count(r.dur) AS unmeasured_count
FROM ranked AS r
GROUP BY r.tid, r.comm, r.task_id, r.kind, r.cause
ORDER BY
  total_ns IS NULL,
  total_ns DESC,
  r.tid, r.task_id, r.kind,
  r.cause;
