-- SPDX-License-Identifier: Apache-2.0
-- @finding   impossible_count
-- @title     The kernel's own count is impossible
-- @summary   A counter of pages is below zero (2^63 and more), more pages are
--   dirty than the machine has, or a limit is fifty times its threshold: the
--   kernel decides by a wrong number, which no setting changes. Waits that it
--   decided by such a number are counted here and nowhere else, and no other
--   finding gives advice.
-- @severity  severe
-- @confidence measured
-- @sentence  {what:raw} in {rows_count} of {events_count} {event:raw}:
--   a kernel bug{doubt:raw}[; {tasks} waited {cost_task_ns} for it].
-- @evidence  check: rows_count = max(trace_value, source=counts of the kernel,
--   what={what}); events_count = max(other_value, source=counts of the kernel,
--   what={what})
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=impossible_count)
-- @advice    No setting helps. Such bugs were in 4.3-rc (2015) and in 5.15
--   (2024): take another kernel, and report it with these lines.
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    confidence TEXT inferred of a limit: the threshold may have fallen
--   right before the trace
-- @column   rows_count INTEGER events with such a number
-- @column   events_count INTEGER events
-- @column    doubt TEXT what else it can be; empty = nothing
-- @column    tasks TEXT who lost it; NULL = nobody was throttled by it
-- @source    mm/page-writeback.c; 4.3-rc and 5.15: memcg writeback counters
SELECT
  CASE i.event WHEN 'sleeps of throttled tasks' THEN coalesce(t.cost_task_ns, 0)
    ELSE 0
  END AS cost_task_ns,
  CASE i.is_sure WHEN 1 THEN 'measured' ELSE 'inferred' END AS confidence,
  i.what, i.rows_count, i.events_count, i.event,
  CASE i.is_sure WHEN 1 THEN ''
    ELSE ', or the threshold fell right before the trace'
  END AS doubt,
  CASE i.event WHEN 'sleeps of throttled tasks' THEN t.tasks END AS tasks
FROM wb_impossible AS i
LEFT JOIN (
  SELECT
    sum(o.cost_task_ns) AS cost_task_ns,
    CASE count(*) WHEN 1 THEN max(o.tasks)
      ELSE sum(o.tasks_count) || ' tasks'
    END AS tasks
  FROM wb_loss_total AS o
  WHERE o.finding = 'impossible_count'
) AS t ON 1 = 1
ORDER BY i.rows_count DESC, i.event, i.what;
