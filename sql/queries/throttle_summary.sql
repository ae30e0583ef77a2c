-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    throttle_summary
-- @title    Throttling in one line
-- @summary  All pauses and sleeps of all tasks together: one row for the run.
-- @read     What runs are compared by. Percentiles are of all pauses above 0 of
--   all tasks, as one list; they are 0 if no task was throttled.
--   throttled_ratio is the time slept over the life of the tasks that have such
--   events. For each task see throttle_by_task.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    one row; order tasks_count
-- @first    throttled_ratio, slept_total_ns, call_max_ns
-- @events   writeback:balance_dirty_pages
-- @optional writeback:balance_dirty_pages_done, sched:sched_switch
-- @instead  completion_waits
-- @column   tasks_count INTEGER tasks under a name with such an event
-- @column   events_count INTEGER events
-- @column   pauses_count INTEGER events with a pause above 0
-- @column   pause_total_ns INTEGER sum of intended pauses
-- @column   pause_p50_ns INTEGER median of pauses above 0, nearest rank
-- @column   pause_p95_ns INTEGER nearest rank
-- @column   pause_p99_ns INTEGER nearest rank
-- @column   pause_max_ns INTEGER longest intended pause
-- @column   slept_total_ns INTEGER best measure of the time slept
-- @column   call_max_ns INTEGER longest call: time in it plus its last sleep
-- @column   throttled_ratio REAL slept_total over the lives of these tasks in
--   the trace; NULL when there is none
-- @metric   pauses_count lower: how often the kernel made a program wait as too
--   much data waited in memory for disks
-- @metric   pause_total_ns lower: how long the kernel wanted programs to wait,
--   all waits together
-- @metric   pause_p50_ns lower: half of the waits that the kernel ordered were
--   at most so long
-- @metric   pause_p95_ns lower: 95 of 100 waits that the kernel ordered were at
--   most so long
-- @metric   pause_p99_ns lower: 99 of 100 waits that the kernel ordered were at
--   most so long
-- @metric   pause_max_ns lower: the longest wait that the kernel ordered
-- @metric   slept_total_ns lower: time tasks slept in balance_dirty_pages(),
--   summed
-- @metric   call_max_ns lower: longest call of balance_dirty_pages()
-- @metric   throttled_ratio lower: share of the writing programs' time in which
--   the kernel made them wait
-- @cost     120
WITH
  counted AS (
    SELECT a.task_id, sum(a.events_count) AS events_count
    FROM wb_throttle_total AS a
    CROSS JOIN wb_params AS p
    JOIN wb_task AS t ON t.task_id = a.task_id
    WHERE of_wb!(a, p)
      AND (p.tid IS NULL OR a.tid = p.tid)
      AND (p.comm_glob IS NULL OR t.comm GLOB p.comm_glob)
    GROUP BY a.task_id
  ),
  chosen AS (
    SELECT c.task_id, c.pause_ns, c.sleep_ts, c.slept_ns, c.call_ns
    FROM wb_throttle AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    JOIN counted AS k ON k.task_id = c.task_id
    WHERE c.is_step = 1
      AND in_time!(c.ts, b)
      AND of_wb!(c, p)
  ),
  -- How often each pause was: they are whole ms, so there are few.
  pause_count AS (
    SELECT c.pause_ns, count(*) AS pauses_count
    FROM chosen AS c
    WHERE c.pause_ns > 0
    GROUP BY c.pause_ns
  ),
  ranked AS (
    SELECT
      p.pause_ns,
      p.pauses_count AS here_count,
      sum(p.pauses_count) OVER (
        ORDER BY p.pause_ns ROWS UNBOUNDED PRECEDING
      ) AS places,
      sum(p.pauses_count) OVER () AS pauses_count
    FROM pause_count AS p
  ),
  -- Nearest rank: the smallest value that at least q percent do not exceed.
  quantile AS (
    SELECT
      coalesce(sum(r.here_count), 0) AS pauses_count,
      coalesce(sum(r.here_count * r.pause_ns), 0) AS pause_total_ns,
      min(CASE WHEN 100 * r.places >= 50 * r.pauses_count THEN r.pause_ns END)
        AS pause_p50_ns,
      min(CASE WHEN 100 * r.places >= 95 * r.pauses_count THEN r.pause_ns END)
        AS pause_p95_ns,
      min(CASE WHEN 100 * r.places >= 99 * r.pauses_count THEN r.pause_ns END)
        AS pause_p99_ns,
      coalesce(max(r.pause_ns), 0) AS pause_max_ns
    FROM ranked AS r
  ),
  task_sum AS (
    SELECT
      c.task_id,
      sum(c.slept_ns) AS slept_ns,
      max(c.call_ns) AS call_max_ns,
      max(c.sleep_ts + c.slept_ns) AS end_ts
    FROM chosen AS c
    GROUP BY c.task_id
  ),
  -- The life of a task in the trace, and to the end of its last sleep.
  life AS (
    SELECT
      k.task_id, k.events_count,
      coalesce(s.slept_ns, 0) AS slept_ns,
      coalesce(s.call_max_ns, 0) AS call_max_ns,
      CASE
        WHEN t.last_ts > b.end_ts THEN b.end_ts
        WHEN t.last_ts < s.end_ts THEN s.end_ts
        ELSE t.last_ts
      END
      - CASE WHEN t.first_ts < b.start_ts THEN b.start_ts ELSE t.first_ts END
        AS life_ns
    FROM counted AS k
    CROSS JOIN wb_bounds AS b
    JOIN wb_task AS t ON t.task_id = k.task_id
    LEFT JOIN task_sum AS s ON s.task_id = k.task_id
  ),
  total AS (
    SELECT
      count(*) AS tasks_count,
      coalesce(sum(l.events_count), 0) AS events_count,
      coalesce(sum(l.slept_ns), 0) AS slept_total_ns,
      coalesce(max(l.call_max_ns), 0) AS call_max_ns,
      -- A sleep that is only intended can be longer than the life.
      1.0 * sum(CASE WHEN l.slept_ns < l.life_ns THEN l.slept_ns
        ELSE l.life_ns END) / nullif(sum(l.life_ns), 0) AS throttled_ratio
    FROM life AS l
  )
SELECT
  t.tasks_count, t.events_count, q.pauses_count, q.pause_total_ns,
  coalesce(q.pause_p50_ns, 0) AS pause_p50_ns,
  coalesce(q.pause_p95_ns, 0) AS pause_p95_ns,
  coalesce(q.pause_p99_ns, 0) AS pause_p99_ns,
  q.pause_max_ns, t.slept_total_ns, t.call_max_ns, t.throttled_ratio
FROM total AS t
CROSS JOIN quantile AS q
ORDER BY t.tasks_count;
