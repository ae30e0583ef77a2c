-- SPDX-License-Identifier: Apache-2.0
-- @finding   unexplained
-- @title     Blocked for reasons that nothing tells
-- @summary   Tasks were blocked for a second and more outside of all waits that
--   the recorded events tell of.
-- @severity  note
-- @confidence measured
-- @sentence  {tasks_count:task} were blocked for {cost_task_ns} for reasons
--   that no recorded event tells.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=, kind=blocked
--   outside throttling); tasks_count = count(tid, finding=, kind=blocked
--   outside throttling)
-- @advice    Record with the profile deep, which has the events of file systems
--   and system calls.
-- @needs     wb_loss, wb_bounds, wb_rule
-- @events    sched:sched_switch
-- @column    cost_task_ns INTEGER time that tasks were blocked
-- @column    tasks_count INTEGER tasks
-- @source    docs/stalls.md
SELECT
  sum(l.dur) AS cost_task_ns,
  count(DISTINCT l.task_id) AS tasks_count
FROM wb_loss AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_rule AS v
WHERE l.finding IS NULL
  AND l.kind = 'blocked outside throttling'
  AND l.ts >= b.start_ts
  AND l.ts < b.end_ts
GROUP BY v.long_call_ns
HAVING sum(l.dur) >= v.long_call_ns
ORDER BY cost_task_ns DESC;
