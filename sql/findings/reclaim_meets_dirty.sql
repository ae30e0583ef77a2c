-- SPDX-License-Identifier: Apache-2.0
-- @finding   reclaim_meets_dirty
-- @title     Reclaim meets dirty pages
-- @summary   Tasks waited in reclaim, which found dirty pages of files where it
--   looked for clean ones (nr_vmscan_immediate_reclaim).
-- @when      reclaim_meets_dirty
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} in reclaim, which met dirty pages
--   instead of clean ones[: {immediate_count} were put off until they are
--   written].
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=reclaim_meets_dirty)
-- @evidence  mmtests_vmstat: immediate_count = max(value,
--   name=Page reclaim immediate)
-- @advice    Lower the dirty limit[ to {proposed_bytes}, about a quarter of
--   it], so that fewer of the pages that reclaim looks at are dirty.
-- @set       vm.dirty_bytes = {proposed_bytes:raw}
-- @set       vm.dirty_background_bytes = {background_bytes:raw}
-- @now       [vm.dirty_bytes = {dirty_bytes:raw}][vm.dirty_ratio =
--   {dirty_percent:raw}]
-- @now       [vm.dirty_background_bytes =
--   {dirty_background_bytes:raw}][vm.dirty_background_ratio =
--   {background_percent:raw}]
-- @costs     Writers are slowed down to the disk's speed earlier.
-- @expect    [{expected:raw}]
-- @needs     wb_loss, wb_loss_total, wb_throttle_cost, wb_bounds,
--   wb_vmstat, wb_dirty_extent, wb_dirty_setting, reclaim_destination,
--   wb_rule
-- @optional  vmscan:mm_vmscan_direct_reclaim_begin, vmscan:mm_vmscan_throttled,
--   writeback:global_dirty_state
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT severe where most of it was lost by tasks that were
--   never throttled for dirtying; else warning
-- @column    tasks TEXT who lost it
-- @column    immediate_count INTEGER dirty pages of files that reclaim put off;
--   NULL = no vmstat files
-- @column    expected TEXT what should fall; NULL = not predicted, as pages
--   went to swap: it did not fall in an experiment with swap, and why is not
--   known (examples/lab/advice)
-- @column    proposed_bytes INTEGER a quarter of the highest limit; NULL =
--   that is no lower limit, or nothing tells
-- @column    background_bytes INTEGER half of that
-- @column    dirty_bytes INTEGER vm.dirty_bytes now; NULL = not set
-- @column    dirty_percent INTEGER vm.dirty_ratio now; NULL = not set
-- @column    dirty_background_bytes INTEGER as dirty_bytes
-- @column    background_percent INTEGER as dirty_percent
-- @column    first_ts INTEGER ns, start of the first wait
-- @column    last_ts INTEGER ns, end of the last
-- @source    mm/vmscan.c shrink_folio_list()
WITH
  proposed AS (
    SELECT
      -- While memory is full of what cannot be dirty (anonymous pages, tmpfs)
      -- the threshold is nearly 0: the highest is the one that was set, and
      -- where most of the time was so, none is proposed.
      s.round_bytes * (1 + m.limit_max_bytes / 4 / s.round_bytes) AS bytes
    FROM wb_dirty_setting AS s
    CROSS JOIN wb_dirty_extent AS m
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.cost_task_ns * v.most_ratio <= (
      SELECT sum(l.dur)
      FROM wb_loss AS l
      CROSS JOIN wb_bounds AS b
      WHERE l.finding = t.finding
        AND l.task_id NOT IN (
          SELECT h.task_id FROM wb_throttle_cost AS h
        )
        AND l.ts >= b.start_ts
        AND l.ts < b.end_ts
    )
      THEN 'severe'
    ELSE 'warning'
  END AS severity,
  t.tasks,
  (
    SELECT g.gained_count
    FROM wb_vmstat AS g
    WHERE g.name = 'nr_vmscan_immediate_reclaim'
  ) AS immediate_count,
  CASE
    WHEN coalesce(r.device_count, 0) = 0
      THEN 'nr_vmscan_immediate_reclaim lower'
  END AS expected,
  p.bytes AS proposed_bytes,
  p.bytes / 2 AS background_bytes,
  s.dirty_bytes,
  s.dirty_ratio AS dirty_percent,
  s.dirty_background_bytes,
  s.dirty_background_ratio AS background_percent,
  t.first_ts,
  t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_dirty_setting AS s
CROSS JOIN wb_dirty_extent AS m
CROSS JOIN reclaim_destination AS r
LEFT JOIN proposed AS p ON p.bytes <= m.thresh_bytes * v.most_ratio
WHERE t.finding = 'reclaim_meets_dirty' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC;
