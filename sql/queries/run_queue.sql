-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    run_queue
-- @title    How long writers were ready to run and had no CPU
-- @summary  Of each task that writes: how long it could run and another task
--   had its CPU, or its cgroup had used up its share (cpu.max).
-- @read     From a sched_switch that takes a running task off its CPU to the
--   one that brings it back. The time until a task that was woken gets a CPU
--   is not in it. A writer that stands here for most of its time is slow
--   whatever the disk does.
-- @filters  range, tid, task
-- @grain    task under a name; order ready_ns descending
-- @events   sched:sched_switch
-- @optional writeback:balance_dirty_pages, syscalls:sys_exit_write
-- @column   comm TEXT its name; as in throttle_by_task
-- @column   ready_ns INTEGER time until it was back on one
-- @column   seen_ns INTEGER from its first to its last sched_switch
-- @column   ready_ratio REAL ready over seen
-- @metric   ready_ns lower: how long writers had no CPU
SELECT
  r.tid, r.comm, r.ready_count, r.ready_ns, r.longest_ns, r.seen_ns,
  1.0 * r.ready_ns / nullif(r.seen_ns, 0) AS ready_ratio
FROM wb_ready AS r
CROSS JOIN wb_params AS p
WHERE (p.tid IS NULL OR r.tid = p.tid)
  AND (p.comm_glob IS NULL OR r.comm GLOB p.comm_glob)
ORDER BY r.ready_ns DESC, r.tid, r.task_id;
