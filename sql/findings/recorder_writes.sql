-- SPDX-License-Identifier: Apache-2.0
-- @finding   recorder_writes
-- @title     The recorder itself was throttled
-- @summary   trace-cmd or wbscope wrote the trace through the page cache and
--   was throttled: it is one of the writers of the run.
-- @severity  note
-- @confidence measured
-- @sentence  The recorder ({tasks}) wrote its trace through the page cache and
--   was throttled for {cost_task_ns}.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, kind=throttle,
--   comm=trace-cmd) + sum(total_ns, kind=throttle, comm=wbscope)
-- @advice    Record past the page cache (wbscope record does), or to another
--   disk.
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that it was held up
-- @column    tasks TEXT its name
-- @source    docs/record.md
SELECT
  sum(l.dur) AS cost_task_ns,
  min(l.comm) AS tasks
FROM wb_loss AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_rule AS v
WHERE l.kind = 'throttle'
  AND l.comm IN ('trace-cmd', 'wbscope')
  AND in_time!(l.ts, b)
GROUP BY v.loss_least_ns
HAVING sum(l.dur) >= v.loss_least_ns
ORDER BY cost_task_ns DESC;
