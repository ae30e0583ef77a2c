-- SPDX-License-Identifier: Apache-2.0
-- @finding   unexplained
-- @title     Tasks were blocked for unknown reasons
-- @summary   Tasks were blocked for half a second or more outside of all waits
--   that the recorded events show. A disk that was busy meanwhile need not be
--   what they waited for. A warning where one was blocked for half a second or
--   more at a stretch.
-- @severity  note
-- @confidence measured
-- @sentence  The trace does not show what blocked {tasks_count:task} for
--   {cost_task_ns} (longest {longest_ns})[; a disk was busy in most of
--   {busy_ns} of it].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=, kind=blocked
--   outside throttling); tasks_count = count(tid, finding=, kind=blocked
--   outside throttling); longest_ns = max(max_ns, finding=, kind=blocked
--   outside throttling); busy_ns = sum(total_ns, finding=, kind=blocked outside
--   throttling, cause=device latency)
-- @advice    [Record with the profile {profile}, which has the events of disks,
--   file systems and system calls.]
-- @events    sched:sched_switch|wbscope:blocked
-- @column    cost_task_ns INTEGER time that tasks were blocked
-- @column    severity TEXT warning or note
-- @column    longest_ns INTEGER longest of these waits
-- @column    tasks_count INTEGER tasks
-- @column    busy_ns INTEGER of that, in waits with a busy disk; NULL = none
-- @column    profile TEXT deep; NULL = the run has its events
-- @source    docs/stalls.md
SELECT
  sum(l.dur) AS cost_task_ns,
  CASE WHEN max(l.dur) >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  max(l.dur) AS longest_ns,
  count(DISTINCT l.tid) AS tasks_count,
  sum(CASE l.cause WHEN 'device latency' THEN l.dur END) AS busy_ns,
  CASE max(w.is_deep) WHEN 0 THEN 'deep' END AS profile
FROM wb_loss AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN (
  SELECT
    EXISTS (SELECT 1 FROM raw_sched_switch)
    AND recorded!('block:block_rq_issue')
    AND (
      EXISTS (SELECT 1 FROM wb_call AS k WHERE k.is_write >= 0)
      OR recorded!('syscalls:sys_enter_write')
    ) AS is_deep
) AS w
CROSS JOIN wb_rule AS v
WHERE l.finding IS NULL
  AND l.kind = 'blocked outside throttling'
  AND in_time!(l.ts, b)
GROUP BY v.long_call_ns
HAVING sum(l.dur) >= v.long_call_ns
ORDER BY cost_task_ns DESC;
