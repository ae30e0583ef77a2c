-- SPDX-License-Identifier: Apache-2.0
-- @finding   no_cpu
-- @title     A writer has no CPU
-- @summary   A task that writes was ready to run and had no CPU for a fifth of
--   its time or more, and for at least half a second: other tasks had the CPUs,
--   or its cgroup had used up its share (cpu.max). A warning where that was
--   half of its time or more. It has no cost and comes after the findings of
--   waits: time without a CPU is no wait of stalls.
-- @severity  warning
-- @confidence measured
-- @sentence  {task} was ready to run and had no CPU for {ready_ns} of
--   {seen_ns} ({ready_ratio}; longest {longest_ns})[, and {more:raw} as well].
-- @evidence  run_queue: ready_ns = max(ready_ns, tid={tid}, comm={comm});
--   seen_ns = max(seen_ns, tid={tid}, comm={comm}); ready_ratio =
--   max(ready_ratio, tid={tid}, comm={comm}); longest_ns = max(longest_ns,
--   tid={tid}, comm={comm})
-- @advice    Look at cpu.max and nr_throttled (cpu.stat) of its cgroup, and at
--   what else wants the CPUs: no setting of writeback changes this.
-- @events    sched:sched_switch
-- @column    cost_task_ns INTEGER 0
-- @column    severity TEXT warning or note
-- @column    task TEXT the one that lost most
-- @column   ready_ns INTEGER time that it was ready and had no CPU
-- @column   seen_ns INTEGER its time
-- @column   ready_ratio REAL share of that
-- @column   longest_ns INTEGER longest wait for a CPU
-- @column    more TEXT how many others of which the same can be said; NULL =
--   none
-- @source    kernel/sched/core.c __schedule(); kernel/sched/fair.c
--   throttle_cfs_rq()
SELECT
  0 AS cost_task_ns,
  CASE WHEN r.ready_ns >= v.most_ratio * r.seen_ns THEN 'warning' ELSE 'note'
  END AS severity,
  task_name!(r) AS task,
  r.tid, r.comm, r.ready_ns, r.seen_ns,
  r.ready_ratio, r.longest_ns,
  CASE count(*) OVER ()
    WHEN 1 THEN NULL
    WHEN 2 THEN '1 writer more'
    ELSE (count(*) OVER () - 1) || ' writers more'
  END AS more
FROM run_queue AS r
CROSS JOIN wb_rule AS v
WHERE r.ready_ns >= v.long_call_ns
  AND r.ready_ns >= v.held_least_ratio * r.seen_ns
  AND r.comm NOT GLOB 'kworker/*'
  AND r.comm NOT GLOB 'loop[0-9]*'
ORDER BY r.ready_ns DESC, r.tid, r.comm
LIMIT 1;
