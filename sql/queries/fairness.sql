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
--   Only tasks that fired balance_dirty_pages are compared. With --window there
--   is a row for each window: a task's rate is what it was charged in the
--   window over the window's length, and 0 where it only slept in
--   balance_dirty_pages(). What a task asks for is judged over the whole time
--   only, so windows have no jain_weighted_ratio.
-- @filters  window, range, bdi, cgroup
-- @grain    bdi, cgroup, with --window also window; order window_start_ns, bdi,
--   cgroup_ino
-- @needs    wb_task_rate, wb_window_rate, wb_params
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tasks_count INTEGER tasks compared
-- @column   jain_ratio REAL Jain's index of the rates; NULL = all are 0
-- @column   jain_weighted_ratio REAL Jain's index of rate over entitlement;
--   NULL = the row is of a window
-- @column   slowest_to_fastest_ratio REAL slowest rate over fastest
-- @column   task_rates TEXT comm-tid=bytes/s of each task, slowest first
-- @column   window_start_ns INTEGER trace clock; NULL = the row is of all the
--   time asked for, as without --window
-- @metric   jain_ratio higher: how equal the speeds of the writers were: 100 %
--   when all were the same, 25 % when one of four got everything
-- @metric   jain_weighted_ratio higher: the same, but a writer that asked for
--   little is not taken for one that was treated badly: 100 % when each got its
--   fair share of what it asked for
-- @metric   slowest_to_fastest_ratio higher: speed of the slowest writer as a
--   share of that of the fastest
WITH
  -- Of the whole run, or of each window with --window.
  chosen AS (
    SELECT
      NULL AS window_start_ns,
      r.bdi,
      r.cgroup_ino,
      r.tid,
      r.comm,
      r.task_id,
      r.dirtied_bytes_per_s AS rate,
      r.dirtied_bytes_per_s / nullif(r.entitlement_bytes_per_s, 0) AS weighted
    FROM wb_task_rate AS r
    CROSS JOIN wb_params AS p
    WHERE p.by_window = 0
      AND (p.bdi IS NULL OR r.bdi = p.bdi)
      AND (p.cgroup_ino IS NULL OR r.cgroup_ino = p.cgroup_ino)
    UNION ALL
    SELECT
      w.window_start_ns,
      w.bdi,
      w.cgroup_ino,
      w.tid,
      w.comm,
      w.task_id,
      w.dirtied_bytes_per_s,
      NULL
    FROM wb_window_rate AS w
    CROSS JOIN wb_params AS p
    WHERE (p.bdi IS NULL OR w.bdi = p.bdi)
      AND (p.cgroup_ino IS NULL OR w.cgroup_ino = p.cgroup_ino)
  ),
  listed AS (
    SELECT
      c.*,
      -- The same text on every row of a group, and kept on one.
      CASE
        WHEN row_number() OVER slowest_first = 1
          THEN group_concat(
            c.comm || '-' || c.tid || '=' || CAST(c.rate + 0.5 AS INTEGER), ' '
          ) OVER (
            slowest_first
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          )
      END AS task_rates
    FROM chosen AS c
    WINDOW slowest_first AS (
      PARTITION BY c.window_start_ns, c.bdi, c.cgroup_ino
      ORDER BY c.rate, c.tid, c.task_id
    )
  )
SELECT
  l.bdi,
  l.cgroup_ino,
  count(*) AS tasks_count,
  sum(l.rate) * sum(l.rate)
    / nullif(count(*) * sum(l.rate * l.rate), 0) AS jain_ratio,
  sum(l.weighted) * sum(l.weighted)
    / (count(*) * sum(l.weighted * l.weighted)) AS jain_weighted_ratio,
  min(l.rate) / nullif(max(l.rate), 0) AS slowest_to_fastest_ratio,
  max(l.task_rates) AS task_rates,
  l.window_start_ns
FROM listed AS l
GROUP BY l.window_start_ns, l.bdi, l.cgroup_ino
ORDER BY l.window_start_ns, l.bdi, l.cgroup_ino;
