-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_jain
-- @title    How fair
-- @order    79
-- @group    Fairness: Jain's index of the run, and of each window of 2 s, in %:
--   100 = all tasks of a bdi were charged equal shares, 25 = one of four had
--   all. Where several bdis had writers, the least even one. Of a window, tasks
--   are compared that wrote all through it and asked for more than they got; no
--   bar: nothing to compare.
-- @parent
-- @summary  Jain's index of the run and of each window, of the least even bdi
--   or cgroup.
-- @grain    the run, window; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   arg_why TEXT in a sentence
-- @column   arg_jain_ratio REAL of a window, as in wb_fairness_window; of the
--   run, as in query fairness: against the shares that tasks were entitled to
--   where it is known what they asked for
-- @column   arg_tasks_count INTEGER tasks that are compared
-- @column   arg_bdi TEXT backing device
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
CREATE VIEW tl_jain AS
WITH
  ranked AS (
    SELECT
      f.*,
      row_number() OVER (
        PARTITION BY f.window_start_ns
        ORDER BY f.jain_ratio, f.bdi, f.cgroup_ino
      ) AS place
    FROM wb_fairness_window AS f
    WHERE f.tasks_count > 1 AND f.jain_ratio IS NOT NULL
  ),
  of_run AS (
    SELECT
      r.bdi, r.cgroup_ino,
      r.rate_bytes_per_s AS rate,
      r.rate_bytes_per_s / nullif(r.entitlement_bytes_per_s, 0) AS weighted,
      r.dirtied_basis = 'bound' AND r.coverage_ratio < v.coverage_least_ratio
        AS is_unknown
    FROM wb_task_rate AS r
    CROSS JOIN wb_rule AS v
  ),
  whole AS (
    SELECT
      r.bdi, r.cgroup_ino,
      count(*) AS tasks_count,
      coalesce(
        sum(r.weighted) * sum(r.weighted)
          / nullif(count(r.weighted) * sum(r.weighted * r.weighted), 0),
        sum(r.rate) * sum(r.rate) / nullif(count(*) * sum(r.rate * r.rate), 0)
      ) AS jain_ratio,
      CASE WHEN sum(r.weighted) IS NULL THEN 'equal' ELSE 'fair' END AS shares
    FROM of_run AS r
    GROUP BY r.bdi, r.cgroup_ino
    HAVING count(*) > 1 AND max(coalesce(r.is_unknown, 0)) = 0
  )
SELECT
  b.start_ts AS ts,
  b.end_ts - b.start_ts AS dur,
  'Writeback/Fairness' AS track,
  printf('whole run: Jain %.1f %%', 100 * w.jain_ratio) AS name,
  NULL AS value,
  NULL AS unit,
  'Jain''s index of fairness of the ' || w.tasks_count || ' writers of '
    || w.bdi || ' is ' || printf('%.1f %%', 100 * w.jain_ratio) || ', against '
    || w.shares || ' shares' AS arg_why,
  w.jain_ratio AS arg_jain_ratio,
  w.tasks_count AS arg_tasks_count,
  w.bdi AS arg_bdi,
  w.cgroup_ino AS arg_cgroup_ino
FROM (
  SELECT a.*
  FROM whole AS a
  WHERE a.jain_ratio IS NOT NULL
  ORDER BY a.jain_ratio, a.bdi, a.cgroup_ino
  LIMIT 1
) AS w
CROSS JOIN wb_bounds AS b
UNION ALL
SELECT
  r.window_start_ns,
  min(w.window_end_ns, b.end_ts) - r.window_start_ns,
  'Writeback/Fairness',
  'Jain ' || CAST(round(100 * r.jain_ratio) AS INTEGER) || ' %',
  NULL, NULL,
  r.tasks_count || ' tasks dirtied pages of ' || r.bdi
    || '; Jain''s index of fairness is '
    || printf('%.1f %%', 100 * r.jain_ratio),
  r.jain_ratio, r.tasks_count, r.bdi, r.cgroup_ino
FROM ranked AS r
JOIN wb_window AS w ON w.window_start_ns = r.window_start_ns
CROSS JOIN wb_bounds AS b
WHERE r.place = 1;
