-- SPDX-License-Identifier: Apache-2.0
-- @finding   unfair
-- @title     Equal writers got unequal shares
-- @summary   Writers of one wb that wrote together and asked for more than they
--   got did not get the same: Jain's index against their max-min fair shares is
--   below 0.8, and one got less than half of another. Not judged of writers
--   with fewer than 16 calls.
-- @severity  warning
-- @confidence measured
-- @sentence  {slow_task} dirtied {slow_bytes_per_s} of {bdi} and {fast_task}
--   {fast_bytes_per_s}, although both asked for more: Jain's index is
--   {jain_ratio}.
-- @evidence  fairness_tasks --bdi {bdi}: slow_bytes_per_s =
--   max(rate_bytes_per_s, tid={slow_tid}, bdi={bdi}); fast_bytes_per_s =
--   max(rate_bytes_per_s, tid={fast_tid}, bdi={bdi})
-- @evidence  fairness: jain_ratio = max(jain_weighted_ratio, bdi={bdi},
--   cgroup_ino={cgroup_ino})
-- @advice    Give each writer a cgroup with io.weight, or look at what the slow
--   one waits for besides: query stalls_by_task.
-- @events    writeback:balance_dirty_pages
-- @optional  sched:sched_switch
-- @column    cost_task_ns INTEGER 0: who got less did not stand still longer
-- @column    bdi TEXT the device
-- @column    cgroup_ino INTEGER cgroup that owns the wb
-- @column    slow_task TEXT who got least
-- @column    slow_tid INTEGER its thread
-- @column    slow_bytes_per_s REAL its rate
-- @column    fast_task TEXT who got most
-- @column    fast_tid INTEGER its thread
-- @column    fast_bytes_per_s REAL its rate
-- @column    jain_ratio REAL Jain's index of rate over entitlement
-- @source    R. Jain et al., A Quantitative Measure of Fairness, DEC-TR-301
WITH
  share AS (
    SELECT
      r.*,
      r.rate_bytes_per_s / r.entitlement_bytes_per_s AS x,
      r.is_demand_limited = 0 AND r.events_count >= v.few_calls_count
        AS is_greedy
    FROM wb_task_rate AS r
    CROSS JOIN wb_rule AS v
    WHERE r.entitlement_bytes_per_s > 0
  ),
  placed AS (
    SELECT
      s.*,
      row_number() OVER (
        PARTITION BY s.bdi, s.cgroup_ino
        ORDER BY s.is_greedy DESC, s.rate_bytes_per_s, s.tid
      ) AS slow_place,
      row_number() OVER (
        PARTITION BY s.bdi, s.cgroup_ino
        ORDER BY s.is_greedy DESC, s.rate_bytes_per_s DESC, s.tid
      ) AS fast_place
    FROM share AS s
  ),
  indexed AS (
    SELECT
      s.bdi, s.cgroup_ino,
      sum(s.x) * sum(s.x) / nullif(count(*) * sum(s.x * s.x), 0) AS jain,
      sum(s.is_greedy) AS greedy_count
    FROM share AS s
    CROSS JOIN wb_rule AS v
    GROUP BY s.bdi, s.cgroup_ino
    -- As the query fairness has it: of less, rates are no shares.
    HAVING max(
      coalesce(
        s.dirtied_basis = 'bound'
          AND s.coverage_ratio < v.coverage_least_ratio, 0
      )
    ) = 0
  )
SELECT
  0 AS cost_task_ns,
  i.bdi, i.cgroup_ino,
  task_name!(a) AS slow_task,
  a.tid AS slow_tid,
  a.rate_bytes_per_s AS slow_bytes_per_s,
  task_name!(z) AS fast_task,
  z.tid AS fast_tid,
  z.rate_bytes_per_s AS fast_bytes_per_s,
  i.jain AS jain_ratio
FROM indexed AS i
CROSS JOIN wb_rule AS v
JOIN placed AS a
  ON a.bdi = i.bdi AND a.cgroup_ino IS i.cgroup_ino AND a.slow_place = 1
JOIN placed AS z
  ON z.bdi = i.bdi AND z.cgroup_ino IS i.cgroup_ino AND z.fast_place = 1
WHERE i.jain < v.fair_least_ratio
  AND i.greedy_count > 1
  AND a.rate_bytes_per_s < v.most_ratio * z.rate_bytes_per_s
ORDER BY i.jain, i.bdi, i.cgroup_ino;
