-- SPDX-License-Identifier: Apache-2.0
-- @finding   fair
-- @title     Whether writers shared the disk fairly
-- @summary   Jain's index of the rates of the writers of one wb that wrote
--   together: against their max-min fair shares where it is known what they
--   asked for, else plain, where all of them did. Of a few calls it says
--   nothing.
-- @severity  fact
-- @confidence measured
-- @sentence  The {tasks_count} writers of {bdi} dirtied {slow_bytes_per_s} to
--   {fast_bytes_per_s} each; Jain's index of fairness is[ {weighted_ratio}, by
--   what each asked for][ {plain_ratio}].
-- @evidence  fairness --bdi {bdi}: weighted_ratio = max(jain_weighted_ratio,
--   bdi={bdi}, cgroup_ino={cgroup_ino}); plain_ratio = max(jain_ratio,
--   bdi={bdi}, cgroup_ino={cgroup_ino})
-- @evidence  fairness_tasks --bdi {bdi}: tasks_count = sum(is_compared,
--   bdi={bdi}, cgroup_ino={cgroup_ino}); fast_bytes_per_s =
--   max(rate_bytes_per_s, bdi={bdi}, cgroup_ino={cgroup_ino}, is_compared=1);
--   slow_bytes_per_s = min(rate_bytes_per_s, bdi={bdi},
--   cgroup_ino={cgroup_ino}, is_compared=1)
-- @events    writeback:balance_dirty_pages
-- @optional  sched:sched_switch
-- @column    cost_task_ns INTEGER 0
-- @column    tasks_count INTEGER writers that wrote together
-- @column    weighted_ratio REAL Jain's index of rate over entitlement; NULL =
--   nothing tells what they asked for
-- @column    plain_ratio REAL Jain's index of the rates; NULL where the other
--   is known
-- @column    slow_bytes_per_s REAL lowest rate
-- @column    fast_bytes_per_s REAL highest rate
-- @source    R. Jain et al., A Quantitative Measure of Fairness, DEC-TR-301
WITH
  share AS (
    SELECT
      r.bdi, r.cgroup_ino, r.dirtied_basis,
      r.rate_bytes_per_s AS rate,
      r.is_compared, r.events_count,
      r.rate_bytes_per_s / r.entitlement_bytes_per_s AS x
    FROM wb_task_rate AS r
  ),
  indexed AS (
    SELECT
      s.bdi, s.cgroup_ino,
      sum(s.is_compared) AS tasks_count,
      sum(s.x) * sum(s.x) / nullif(count(s.x) * sum(s.x * s.x), 0) AS weighted,
      sum(s.rate) * sum(s.rate) / nullif(count(*) * sum(s.rate * s.rate), 0)
        AS plain,
      min(CASE s.is_compared WHEN 1 THEN s.rate END) AS slow,
      max(CASE s.is_compared WHEN 1 THEN s.rate END) AS fast
    FROM share AS s
    CROSS JOIN wb_rule AS v
    GROUP BY s.bdi, s.cgroup_ino, v.few_calls_count
    HAVING sum(s.is_compared) > 1
      AND max(s.dirtied_basis = 'bound') = 0
      AND min(CASE s.is_compared WHEN 1 THEN s.events_count END)
        >= v.few_calls_count
      -- The plain index is one of all tasks.
      AND (count(s.x) > 0 OR min(s.is_compared) = 1)
  )
SELECT
  0 AS cost_task_ns,
  i.bdi, i.cgroup_ino, i.tasks_count,
  i.weighted AS weighted_ratio,
  CASE WHEN i.weighted IS NULL THEN i.plain END AS plain_ratio,
  i.slow AS slow_bytes_per_s,
  i.fast AS fast_bytes_per_s
FROM indexed AS i
ORDER BY i.tasks_count DESC, i.bdi, i.cgroup_ino;
