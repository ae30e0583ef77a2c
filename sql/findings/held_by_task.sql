-- SPDX-License-Identifier: Apache-2.0
-- @finding   held_by_task
-- @title     Tasks wait for another task
-- @summary   Tasks were blocked until another task woke them, which was not
--   throttled for most of that time: it held a lock that they needed, or they
--   waited until it would exec (vfork) or exit. The trace does not show which.
-- @when      held_by_task
-- @severity  warning
-- @confidence inferred
-- @sentence  {tasks} waited {cost_task_ns} (longest {longest_ns})[ on {bdi}]
--   until {holder} ended the wait: for a lock that it held, or for itself, as
--   after vfork().
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=held_by_task);
--   longest_ns = max(max_ns, finding=held_by_task)
-- @advice    Look at what {holder} did meanwhile: wbscope query stalls RUN.
-- @optional  sched:sched_switch, sched:sched_waking, wbscope:blocked
-- @column    severity TEXT warning or note
-- @column    holder TEXT the task that woke them, after the most of that time
-- @source    kernel/sched/core.c try_to_wake_up()
SELECT
  t.cost_task_ns,
  CASE WHEN t.longest_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  t.tasks, t.bdi, t.longest_ns, h.holder, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
LEFT JOIN holders!('held_by_task') AS h ON h.bdi IS t.bdi AND h.place = 1
WHERE t.finding = 'held_by_task' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
