-- SPDX-License-Identifier: Apache-2.0
-- @query    fairness_tasks
-- @title    Rates that fairness was made of
-- @summary  The rate of each task that dirties pages, and its fair share.
-- @read     A task far below its entitlement got less than its share, or asked
--   for less: one that was hardly held up, or slept of its own accord for half
--   of the rest of its time, got all it asked for (is_demand_limited). Of the
--   others the events do not tell; without sched_switch they never tell that a
--   task slept of its own accord.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    bdi, cgroup, task under a name; order bdi, cgroup_ino, rate
-- @needs    wb_task_rate, wb_params
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time; as in throttle_by_task
-- @column   dirtied_bytes INTEGER lower bound, first to last event
-- @column   active_ns INTEGER time from its first to its last event
-- @column   dirtied_bytes_per_s REAL its rate in that time
-- @column   slept_ratio REAL share of that time that it slept
-- @column   idle_ratio REAL share of the time in which it was not throttled
--   that it slept of its own accord; NULL = sched_switch did not watch it
-- @column   is_demand_limited INTEGER 1: it got all it asked for
-- @column   entitlement_bytes_per_s REAL max-min fair share
-- @metric   dirtied_bytes_per_s neutral: how fast this writer produced data;
--   compare it with the entitlement: far below it, others got what this one
--   could have had, or it asked for less
SELECT
  r.bdi,
  r.cgroup_ino,
  r.tid,
  r.comm,
  r.dirtied_bytes,
  r.active_ns,
  r.dirtied_bytes_per_s,
  r.slept_ratio,
  r.idle_ratio,
  r.is_demand_limited,
  r.entitlement_bytes_per_s
FROM wb_task_rate AS r
CROSS JOIN wb_params AS p
WHERE (p.bdi IS NULL OR r.bdi = p.bdi)
  AND (p.tid IS NULL OR r.tid = p.tid)
  AND (p.comm_glob IS NULL OR r.comm GLOB p.comm_glob)
  AND (p.cgroup_ino IS NULL OR r.cgroup_ino = p.cgroup_ino)
ORDER BY r.bdi, r.cgroup_ino, r.dirtied_bytes_per_s, r.tid, r.task_id;
