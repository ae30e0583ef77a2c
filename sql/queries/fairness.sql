-- SPDX-License-Identifier: Apache-2.0
-- @query    fairness
-- @title    Fairness between writers
-- @order    20
-- @summary  How evenly the tasks that dirty pages of one bdi shared it.
-- @read     jain_ratio is 100 % when all tasks got the same rate and 1/tasks
--   when one got all; jain_weighted_ratio compares each with its max-min share.
--   There a task counts as asking for little, and not as treated badly, only
--   when it was held up for less than 5 % of its time or, where sched_switch
--   was recorded, slept of its own accord for half of the rest. Of other tasks
--   that were held up the events do not tell what they would have asked for.
--   Only tasks that fired balance_dirty_pages are compared.
-- @filters  range, bdi, cgroup
-- @grain    bdi, cgroup; order bdi, cgroup_ino
-- @needs    wb_task_rate, wb_params
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tasks_count INTEGER tasks compared
-- @column   jain_ratio REAL Jain's index of the rates
-- @column   jain_weighted_ratio REAL Jain's index of rate over entitlement
-- @column   slowest_to_fastest_ratio REAL slowest rate over fastest
-- @column   task_rates TEXT comm-tid=bytes/s of each task, slowest first
-- @metric   jain_ratio higher: how equal the speeds of the writers were: 100 %
--   when all were the same, 25 % when one of four got everything
-- @metric   jain_weighted_ratio higher: the same, but a writer that asked for
--   little is not taken for one that was treated badly: 100 % when each got its
--   fair share of what it asked for
-- @metric   slowest_to_fastest_ratio higher: speed of the slowest writer as a
--   share of that of the fastest
WITH
  chosen AS (
    SELECT
      r.bdi,
      r.cgroup_ino,
      r.tid,
      r.comm,
      r.task_id,
      r.dirtied_bytes_per_s AS rate,
      r.dirtied_bytes_per_s / nullif(r.entitlement_bytes_per_s, 0) AS weighted
    FROM wb_task_rate AS r
    CROSS JOIN wb_params AS p
    WHERE (p.bdi IS NULL OR r.bdi = p.bdi)
      AND (p.cgroup_ino IS NULL OR r.cgroup_ino = p.cgroup_ino)
  ),
  listed AS (
    SELECT
      c.*,
      group_concat(
        c.comm || '-' || c.tid || '=' || CAST(c.rate + 0.5 AS INTEGER), ' '
      ) OVER (
        PARTITION BY c.bdi, c.cgroup_ino ORDER BY c.rate, c.tid, c.task_id
        ROWS UNBOUNDED PRECEDING
      ) AS rates_so_far,
      row_number() OVER (
        PARTITION BY c.bdi, c.cgroup_ino
        ORDER BY c.rate DESC, c.tid DESC, c.task_id DESC
      ) AS from_fastest
    FROM chosen AS c
  )
SELECT
  l.bdi,
  l.cgroup_ino,
  count(*) AS tasks_count,
  sum(l.rate) * sum(l.rate) / (count(*) * sum(l.rate * l.rate)) AS jain_ratio,
  sum(l.weighted) * sum(l.weighted)
    / (count(*) * sum(l.weighted * l.weighted)) AS jain_weighted_ratio,
  min(l.rate) / max(l.rate) AS slowest_to_fastest_ratio,
  max(CASE WHEN l.from_fastest = 1 THEN l.rates_so_far END) AS task_rates
FROM listed AS l
GROUP BY l.bdi, l.cgroup_ino
ORDER BY l.bdi, l.cgroup_ino;
