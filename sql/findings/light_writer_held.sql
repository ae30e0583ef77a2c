-- SPDX-License-Identifier: Apache-2.0
-- @finding   light_writer_held
-- @title     A light writer is throttled beside a greedy one
-- @summary   A task that asked for less than its fair share was throttled for a
--   fifth of its time or more: at the limit the kernel throttles all writers.
-- @severity  note
-- @confidence measured
-- @sentence  {light_task}[ asked for {asked_bytes_per_s} of {bdi} and got
--   {light_bytes_per_s}][ dirtied {own_bytes_per_s} of {bdi} and asked for no
--   more], yet it was throttled for {slept_ratio} of its time[, one write for
--   {call_max_ns}]: {greedy_task} dirtied {greedy_bytes_per_s} beside it.
-- @evidence  fairness_tasks --bdi {bdi}: light_bytes_per_s =
--   max(rate_bytes_per_s, tid={light_tid}, bdi={bdi}); own_bytes_per_s =
--   max(rate_bytes_per_s, tid={light_tid}, bdi={bdi}); asked_bytes_per_s =
--   max(asked_bytes_per_s, tid={light_tid}, bdi={bdi}); slept_ratio =
--   max(slept_ratio, tid={light_tid}, bdi={bdi}); greedy_bytes_per_s =
--   max(rate_bytes_per_s, tid={greedy_tid}, bdi={bdi})
-- @evidence  throttle_by_task --bdi {bdi}: call_max_ns = max(call_max_ns,
--   tid={light_tid}, bdi={bdi})
-- @advice    Slow the greedy writer down before the kernel throttles all
--   writers: give it a cgroup with memory.high, or a rate limit of its own.
-- @events    writeback:balance_dirty_pages
-- @optional  sched:sched_switch
-- @column    cost_task_ns INTEGER 0: its waits are told of by the finding that
--   has their cause
-- @column    bdi TEXT the device
-- @column    light_task TEXT the lightest of them
-- @column    light_tid INTEGER its thread
-- @column    asked_bytes_per_s REAL what it asked for by fio; else NULL
-- @column    light_bytes_per_s REAL its rate, beside that; else NULL
-- @column    own_bytes_per_s REAL its rate, where that is not known; else NULL
-- @column    slept_ratio REAL share of its time that it was throttled
-- @column    call_max_ns INTEGER longest that a call of balance_dirty_pages()
--   took; NULL = that is not felt
-- @column    greedy_task TEXT who wrote most
-- @column    greedy_tid INTEGER its thread
-- @column    greedy_bytes_per_s REAL its rate
-- @source    mm/page-writeback.c balance_dirty_pages()
WITH
  ranked AS (
    SELECT
      r.*,
      row_number() OVER (
        PARTITION BY r.bdi, r.cgroup_ino
        ORDER BY r.rate_bytes_per_s DESC, r.tid
      ) AS fast_place
    FROM wb_task_rate AS r
    WHERE r.is_compared = 1
  ),
  light AS (
    SELECT
      r.*,
      row_number() OVER (
        PARTITION BY r.bdi, r.cgroup_ino ORDER BY r.rate_bytes_per_s, r.tid
      ) AS place
    FROM wb_task_rate AS r
    CROSS JOIN wb_rule AS v
    WHERE r.is_compared = 1
      AND r.is_demand_limited = 1
      AND r.slept_ratio >= v.held_least_ratio
  )
SELECT
  0 AS cost_task_ns,
  l.bdi,
  task_name!(l) AS light_task,
  l.tid AS light_tid,
  CASE l.demand_basis WHEN 'fio' THEN l.asked_bytes_per_s END
    AS asked_bytes_per_s,
  CASE l.demand_basis WHEN 'fio' THEN l.rate_bytes_per_s END
    AS light_bytes_per_s,
  CASE WHEN l.demand_basis <> 'fio' THEN l.rate_bytes_per_s END
    AS own_bytes_per_s,
  l.slept_ratio,
  (
    SELECT max(CASE WHEN p.call_ns >= v.pause_max_ns THEN p.call_ns END)
    FROM wb_throttle_pause AS p
    CROSS JOIN wb_bounds AS b
    JOIN wb_task AS k ON k.task_id = l.task_id AND task_of!(k, p)
    WHERE p.bdi = l.bdi AND in_time!(p.ts, b)
  ) AS call_max_ns,
  task_name!(g) AS greedy_task,
  g.tid AS greedy_tid,
  g.rate_bytes_per_s AS greedy_bytes_per_s
FROM light AS l
CROSS JOIN wb_rule AS v
JOIN ranked AS g
  ON g.bdi = l.bdi AND g.cgroup_ino IS l.cgroup_ino AND g.fast_place = 1
WHERE l.place = 1
  AND g.task_id <> l.task_id
  AND coalesce(g.is_demand_limited, 0) = 0
  AND l.rate_bytes_per_s <= v.most_ratio * g.rate_bytes_per_s
ORDER BY l.slept_ratio DESC, l.bdi, l.tid;
