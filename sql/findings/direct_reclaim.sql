-- SPDX-License-Identifier: Apache-2.0
-- @finding   direct_reclaim
-- @title     Tasks reclaim memory themselves
-- @summary   Tasks waited in direct reclaim, which met hardly any dirty page:
--   kswapd does not keep up. A warning where it cost more than throttling.
-- @when      direct_reclaim
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} in direct reclaim[, more than the
--   {throttled_ns} of throttling].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=direct_reclaim);
--   throttled_ns = sum(total_ns, kind=throttle)
-- @advice    Let kswapd begin earlier.
-- @set       vm.watermark_scale_factor = {proposed_factor:raw}
-- @now       [vm.watermark_scale_factor = {watermark_scale_factor:raw}]
-- @costs     More memory stays free and unused.
-- @expect    allocstall lower
-- @needs     wb_loss, wb_loss_total, wb_dirty_setting, wb_bounds, wb_rule
-- @events    vmscan:mm_vmscan_direct_reclaim_begin
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT warning or note
-- @column    tasks TEXT who lost it
-- @column    throttled_ns INTEGER time that tasks were throttled; NULL = that
--   was more
-- @column    watermark_scale_factor INTEGER setting now; NULL = not known
-- @column    proposed_factor INTEGER ten times that, 1000 at most
-- @column    first_ts INTEGER ns, start of the first wait
-- @column    last_ts INTEGER ns, end of the last
-- @source    mm/page_alloc.c __perform_reclaim()
WITH
  throttled AS (
    SELECT coalesce(sum(l.dur), 0) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle' AND l.ts >= b.start_ts AND l.ts < b.end_ts
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.cost_task_ns >= v.long_call_ns AND t.cost_task_ns > h.dur
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  t.tasks,
  CASE WHEN h.dur > 0 AND h.dur < t.cost_task_ns THEN h.dur END
    AS throttled_ns,
  s.watermark_scale_factor,
  min(1000, 10 * coalesce(s.watermark_scale_factor, 10)) AS proposed_factor,
  t.first_ts,
  t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_dirty_setting AS s
CROSS JOIN throttled AS h
WHERE t.finding = 'direct_reclaim' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC;
