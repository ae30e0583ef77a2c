-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    fairness
-- @title    Fairness between writers
-- @order    20
-- @summary  How evenly the tasks that dirty pages of one bdi shared it.
-- @read     jain_ratio is 100 % when all tasks got the same rate and 1/tasks
--   when one got all. dirtied_basis says what the rates are made of: folio,
--   probe, proc_io and fio are exact, calibrated is within some per cent, bound
--   is a lower bound that misses what was dirtied in free run. coverage is the
--   share of what the machine dirtied that events charge to tasks: below 50 %,
--   bounds say nothing and there is no index. jain_weighted_ratio compares each
--   task with its max-min share of what it asked for, of those that wrote
--   together (is_compared of fairness_tasks); demand_basis says how that is
--   known: fio (rate= of the jobs), sched (sleeps of its own accord) or none,
--   then it is NULL. Only tasks that fired balance_dirty_pages are compared,
--   without those that wrote a few KiB on the side. With --window there is a
--   row for each window: a task that only slept in it has rate 0. What a task
--   asks for is judged over the whole time only.
-- @filters  window, range, bdi, cgroup
-- @grain    bdi, cgroup, with --window also window; order window_start_ns, bdi,
--   cgroup_ino
-- @keys     window_start_ns, bdi, cgroup_ino
-- @first    jain_ratio, jain_weighted_ratio, slowest_to_fastest_ratio,
--   tasks_count
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tasks_count INTEGER tasks compared
-- @column   jain_ratio REAL Jain's index of the rates; NULL = all are 0, or
--   bounds with a coverage below wb_rule.coverage_least_ratio
-- @column   jain_weighted_ratio REAL Jain's index of rate over entitlement;
--   NULL = the row is of a window, demand_basis is none, or no two tasks wrote
--   together
-- @column   slowest_to_fastest_ratio REAL slowest rate over fastest
-- @column   dirtied_basis TEXT as basis of wb_task_dirtied
-- @column   coverage_ratio REAL bytes charged by events over bytes that the
--   machine dirtied; NULL = global_dirty_state does not tell
-- @column   demand_basis TEXT what tells the demand: fio, sched or none
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
      r.bdi, r.cgroup_ino, r.tid, r.comm, r.task_id,
      r.rate_bytes_per_s AS rate,
      r.rate_bytes_per_s / nullif(r.entitlement_bytes_per_s, 0) AS weighted,
      r.dirtied_basis, r.coverage_ratio, r.demand_basis
    FROM wb_task_rate AS r
    CROSS JOIN wb_params AS p
    WHERE p.by_window = 0
      AND of_wb!(r, p)
    UNION ALL
    SELECT
      w.window_start_ns, w.bdi, w.cgroup_ino, w.tid, w.comm, w.task_id,
      w.rate_bytes_per_s, NULL, w.dirtied_basis, w.coverage_ratio, NULL
    FROM _window_rate AS w
    CROSS JOIN wb_params AS p
    WHERE of_wb!(w, p)
  ),
  listed AS (
    SELECT
      c.*,
      -- NULL: nothing is known of how the tasks compare.
      CASE
        WHEN c.dirtied_basis <> 'bound' THEN 1
        WHEN c.coverage_ratio < v.coverage_least_ratio THEN NULL
        ELSE 1
      END AS is_told,
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
    CROSS JOIN wb_rule AS v
    WINDOW slowest_first AS (
      PARTITION BY c.window_start_ns, c.bdi, c.cgroup_ino
      ORDER BY c.rate, c.tid, c.task_id
    )
  )
SELECT
  l.bdi, l.cgroup_ino,
  count(*) AS tasks_count,
  min(l.is_told) * sum(l.rate) * sum(l.rate)
    / nullif(count(*) * sum(l.rate * l.rate), 0) AS jain_ratio,
  min(l.is_told) * sum(l.weighted) * sum(l.weighted)
    / (count(l.weighted) * sum(l.weighted * l.weighted)) AS jain_weighted_ratio,
  min(l.is_told) * min(l.rate) / nullif(max(l.rate), 0)
    AS slowest_to_fastest_ratio,
  min(l.dirtied_basis) AS dirtied_basis,
  max(l.coverage_ratio) AS coverage_ratio,
  min(l.demand_basis) AS demand_basis,
  max(l.task_rates) AS task_rates,
  l.window_start_ns
FROM listed AS l
GROUP BY l.window_start_ns, l.bdi, l.cgroup_ino
ORDER BY l.window_start_ns, l.bdi, l.cgroup_ino;

-- @view     _window_rate
-- @summary  How fast each throttled task dirtied pages of each wb in each
--   window in which it dirtied or slept; empty unless windows are asked for
--   (wb_params.by_window). A sleep is taken as starting at its event.
-- @grain    window, bdi, cgroup, task under a name; order window_start_ns, bdi,
--   cgroup_ino, tid
-- @column   rate_bytes_per_s REAL over the part of the window in the trace
-- @column   dirtied_basis TEXT as basis of wb_task_dirtied; NULL = the task
--   only slept
CREATE VIEW _window_rate AS
WITH
  touched AS (
    SELECT w.window_index, t.bdi, t.cgroup_ino, t.task_id, 0.0 AS bytes
    FROM wb_params AS p
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_throttle_pause AS t
    CROSS JOIN wb_window AS w
    WHERE p.by_window = 1
      AND t.slept_ns > 0
      AND touches!(t.ts, t.ts + t.slept_ns, w, b, p)
    UNION ALL
    SELECT d.window_index, d.bdi, d.cgroup_ino, d.task_id, d.dirtied_bytes
    FROM wb_params AS p
    CROSS JOIN wb_dirtied_part AS d
    WHERE p.by_window = 1
  ),
  cell AS (
    SELECT
      t.window_index, t.bdi, t.cgroup_ino, t.task_id,
      sum(t.bytes) AS bytes
    FROM touched AS t
    GROUP BY t.window_index, t.bdi, t.cgroup_ino, t.task_id
  ),
  -- The last window may be longer than what is left of the trace.
  covered AS (
    SELECT
      w.window_index, w.window_start_ns,
      min(w.window_end_ns, b.end_ts, b.last_ts + 1) - w.window_start_ns
        AS covered_ns
    FROM wb_window AS w
    CROSS JOIN wb_bounds AS b
  )
SELECT
  w.window_start_ns, c.bdi, c.cgroup_ino, k.tid, k.comm, c.task_id,
  1.0 * u.second_ns * c.bytes / w.covered_ns AS rate_bytes_per_s,
  d.basis AS dirtied_basis,
  d.coverage_ratio
FROM cell AS c
CROSS JOIN wb_units AS u
JOIN covered AS w ON w.window_index = c.window_index
JOIN wb_task AS k ON k.task_id = c.task_id
-- A task that only sleeps on in the time of interest is not in it.
LEFT JOIN wb_task_dirtied AS d
  ON same_writer!(d, c)
WHERE coalesce(d.is_incidental, 0) = 0;
