-- SPDX-License-Identifier: Apache-2.0
-- @finding   memcg_high
-- @title     A memory cgroup is above memory.high
-- @summary   Tasks slept for more than 10 ms right after the reclaim of their
--   memory cgroup, and no event gives another reason: that is how the kernel
--   slows down a cgroup that stays above its memory.high. A warning where they
--   lost half a second or more, else a note.
-- @when      memcg_high
-- @severity  warning
-- @confidence inferred
-- @sentence  {tasks} slept {cost_task_ns} right after the reclaim of their
--   memory cgroup (longest {longest_ns}): most likely that cgroup was above its
--   memory.high, which makes its tasks sleep for up to 2 s.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=memcg_high);
--   longest_ns = max(max_ns, finding=memcg_high)
-- @advice    Look at memory.high and memory.current of the cgroup of these
--   tasks, and at high in its memory.events: raise memory.high, or let them use
--   less memory.
-- @events    sched:sched_switch|wbscope:blocked,
--   vmscan:mm_vmscan_memcg_reclaim_begin
-- @column    severity TEXT warning or note
-- @column   longest_ns INTEGER longest of these sleeps
-- @column   first_ts INTEGER ns, start of the first
-- @source    mm/memcontrol.c mem_cgroup_handle_over_high()
SELECT
  t.cost_task_ns,
  CASE WHEN t.cost_task_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  t.tasks, t.longest_ns, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
WHERE t.finding = 'memcg_high' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC;
