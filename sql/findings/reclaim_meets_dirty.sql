-- SPDX-License-Identifier: Apache-2.0
-- @finding   reclaim_meets_dirty
-- @title     Reclaim meets dirty pages
-- @summary   Tasks waited in reclaim, which found dirty file pages
--   (nr_vmscan_immediate_reclaim, nr_dirty of mm_vmscan_lru_shrink_inactive).
--   Without these the wait for writeback alone (VMSCAN_THROTTLE_WRITEBACK)
--   tells, which is inferred: no advice is given.
-- @when      reclaim_meets_dirty
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} in reclaim, which {met:raw}[:
--   {immediate_count} were deferred until writeback completes].
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=reclaim_meets_dirty)
-- @evidence  mmtests_vmstat: immediate_count = max(value,
--   name=Page reclaim immediate)
-- @advice    [{lower:raw}][ to {proposed_bytes}, about a quarter of it][, so
--   that fewer of the pages that reclaim {looks:raw} are dirty.][{record:raw}]
-- @set       vm.dirty_bytes = {proposed_bytes:raw}
-- @set       vm.dirty_background_bytes = {background_bytes:raw}
-- @now       [vm.dirty_bytes = {dirty_bytes:raw}][vm.dirty_ratio =
--   {dirty_percent:raw}]
-- @now       [vm.dirty_background_bytes =
--   {dirty_background_bytes:raw}][vm.dirty_background_ratio =
--   {background_percent:raw}]
-- @costs     Writers are throttled to the disk's speed earlier.
-- @expect    [{expected:raw}]
-- @optional  vmscan:mm_vmscan_direct_reclaim_begin, vmscan:mm_vmscan_throttled,
--   writeback:global_dirty_state
-- @column    severity TEXT severe where most of it was lost by tasks that were
--   never throttled for dirtying; else warning
-- @column    title TEXT where nothing shows dirty pages; NULL = as above
-- @column    confidence TEXT inferred where nothing shows dirty pages
-- @column    met TEXT what reclaim met
-- @column    lower TEXT what to do; NULL where nothing shows dirty pages
-- @column    looks TEXT as lower
-- @column    record TEXT what would show them; NULL = they are shown
-- @column    expected TEXT what should fall; NULL = not predicted, as pages
--   went to swap: it did not fall in an experiment with swap, and why is not
--   known (examples/lab/advice)
-- @column    proposed_bytes INTEGER a quarter of the highest limit; NULL =
--   that is no lower limit, or nothing tells
-- @column    background_bytes INTEGER half of that
-- @column    dirty_percent INTEGER vm.dirty_ratio now; NULL = not set
-- @column   dirty_background_bytes INTEGER vm.dirty_background_bytes now; NULL
--   = not set
-- @column    background_percent INTEGER as dirty_percent
-- @source    mm/vmscan.c shrink_folio_list()
WITH
  proposed AS (
    SELECT
      -- While memory is full of what cannot be dirty (anonymous pages, tmpfs)
      -- the threshold is nearly 0: the highest is the one that was set, and
      -- where most of the time was so, none is proposed.
      u.round_bytes * (1 + m.limit_max_bytes / 4 / u.round_bytes) AS bytes
    FROM wb_units AS u
    CROSS JOIN dirty_limits AS m
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
          SELECT h.task_id FROM wb_throttle AS h WHERE h.is_step = 1
        )
        AND in_time!(l.ts, b)
    )
      THEN 'severe'
    ELSE 'warning'
  END AS severity,
  CASE d.is_shown WHEN 0 THEN 'Tasks wait in reclaim for writeback' END
    AS title,
  CASE d.is_shown WHEN 1 THEN 'measured' ELSE 'inferred' END AS confidence,
  t.tasks,
  CASE d.is_shown
    WHEN 1 THEN 'met dirty pages instead of clean ones'
    ELSE 'slept for writeback; whether it met dirty pages was not recorded'
  END AS met,
  CASE d.is_shown WHEN 1 THEN 'Lower the dirty limit' END AS lower,
  CASE d.is_shown WHEN 1 THEN 'looks at' END AS looks,
  CASE d.is_shown
    WHEN 0 THEN 'Record what reclaim met: wbscope record --profile reclaim'
      || ' --duration 30s -o RUN.'
  END AS record,
  r.immediate_count,
  CASE
    WHEN coalesce(r.device_count, 0) = 0
      THEN 'nr_vmscan_immediate_reclaim lower'
  END AS expected,
  p.bytes AS proposed_bytes,
  p.bytes / 2 AS background_bytes,
  u.dirty_bytes,
  u.dirty_ratio AS dirty_percent,
  u.dirty_background_bytes,
  u.dirty_background_ratio AS background_percent,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
CROSS JOIN dirty_limits AS m
CROSS JOIN reclaim_run AS r
CROSS JOIN (
  SELECT
    m.is_meeting_dirty = 1 OR EXISTS (
      SELECT 1
      FROM raw_mm_vmscan_lru_shrink_inactive AS s
      WHERE s.nr_dirty > 0
    ) AS is_shown
  FROM reclaim_run AS m
) AS d
LEFT JOIN proposed AS p
  ON p.bytes <= m.thresh_bytes * v.most_ratio AND d.is_shown = 1
WHERE t.finding = 'reclaim_meets_dirty' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC;
