-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    fairness_tasks
-- @title    Rates that fairness was made of
-- @summary  The rate of each task that dirties pages, and its fair share.
-- @read     rate is by dirtied_basis (see fairness): compare it with the
--   entitlement. A task far below its entitlement got less than its share.
--   asked is what it asked for, where its fio job has a rate= or sched_switch
--   saw it sleep of its own accord, or compute for so long that it could not
--   dirty its share; demand_basis none: nothing tells, so there is no
--   entitlement. Nor is there one where is_compared is 0: the task did not
--   write together with those that are compared. dirtied and
--   dirtied_bytes_per_s are lower bounds, from the events alone.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    bdi, cgroup, task under a name; order bdi, cgroup_ino, rate
-- @first    rate_bytes_per_s, entitlement_bytes_per_s, slept_ratio,
--   is_demand_limited, dirtied_estimate_bytes
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch,
--   block:block_rq_issue, block:block_rq_complete
-- @column   coverage_ratio REAL bytes charged by events to all tasks over bytes
--   that the machine dirtied; NULL = global_dirty_state does not tell
-- @column   dirtied_bytes INTEGER lower bound, first to last event
-- @column   dirtied_bytes_per_s REAL lower bound of its rate in that time
-- @column   idle_ratio REAL share of the time in which it was not throttled
--   that it slept of its own accord; NULL = sched_switch did not watch it
-- @column   is_compared INTEGER 1: it is of those, the most of its wb, that
--   wrote at the same time for a second or more, or the only one
-- @column   is_demand_limited INTEGER 1: it asked for less than all it could
--   get; NULL = nothing tells
-- @column   asked_bytes_per_s REAL what it asked for; NULL = all, or not known
-- @column   demand_basis TEXT fio, sched or none
-- @column   entitlement_bytes_per_s REAL max-min fair share; all are smaller by
--   one factor where one would be more than the device writes; NULL = not known
-- @metric   rate_bytes_per_s neutral: how fast this writer produced data;
--   compare it with the entitlement: far below it, others got what this one
--   could have had, or it asked for less
-- @metric   dirtied_bytes_per_s neutral: the same as far as the kernel charged
--   it: less than it really was
WITH
  -- Nobody is entitled to more than all of the device.
  most AS (
    SELECT r.bdi, r.cgroup_ino, max(r.entitlement_bytes_per_s) AS bytes_per_s
    FROM wb_task_rate AS r
    GROUP BY r.bdi, r.cgroup_ino
  )
SELECT
  r.bdi, r.cgroup_ino, r.tid, r.comm, r.rate_bytes_per_s,
  r.dirtied_estimate_bytes, r.dirtied_basis, r.coverage_ratio, r.dirtied_bytes,
  r.active_ns, r.dirtied_bytes_per_s, r.slept_ratio, r.idle_ratio,
  r.is_compared, r.is_demand_limited, r.asked_bytes_per_s, r.demand_basis,
  r.entitlement_bytes_per_s
    * coalesce(min(w.disk_bytes_per_s / nullif(m.bytes_per_s, 0), 1.0), 1.0)
    AS entitlement_bytes_per_s
FROM wb_task_rate AS r
CROSS JOIN wb_params AS p
JOIN most AS m ON m.bdi = r.bdi AND m.cgroup_ino IS r.cgroup_ino
LEFT JOIN wb_disk_rate AS w ON w.bdi = r.bdi
WHERE asked!(r, p)
ORDER BY r.bdi, r.cgroup_ino, r.rate_bytes_per_s, r.tid, r.task_id;
