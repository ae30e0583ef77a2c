-- SPDX-License-Identifier: Apache-2.0
-- @finding   background_near_limit
-- @title     The flusher starts too near the limit
-- @summary   Tasks were throttled, and the disk writes what lies between the
--   background threshold and the dirty threshold in less than half a second:
--   when the flusher starts, writers are about to be blocked.
-- @severity  note
-- @confidence measured
-- @sentence  Background writeback starts at {bg_thresh_bytes} and writers are
--   blocked at {thresh_bytes}: {bdi} writes the difference in {gap_ns}.
-- @evidence  dirty_limits: bg_thresh_bytes = max(bg_thresh_bytes); thresh_bytes
--   = max(thresh_bytes)
-- @evidence  disk_rates: gap_ns = max(gap_ns, bdi={bdi})
-- @evidence  lost_time: cost_task_ns = sum(total_ns, kind=throttle, bdi={bdi})
-- @advice    Start the flusher earlier.
-- @set       vm.dirty_background_bytes = {background_bytes:raw}
-- @now       [vm.dirty_background_bytes =
--   {dirty_background_bytes:raw}][vm.dirty_background_ratio =
--   {background_percent:raw}]
-- @costs     Files that are deleted or written again soon are written more
--   often.
-- @expect    throttle_summary.slept_total_ns lower
-- @events    writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column    cost_task_ns INTEGER time that writers to the device were held up
-- @column   thresh_bytes INTEGER mean dirty threshold
-- @column    gap_ns INTEGER how long the device takes to write the difference
-- @column    background_bytes INTEGER a quarter of the dirty threshold
-- @column   dirty_background_bytes INTEGER setting now; NULL = not set
-- @column    background_percent INTEGER setting now; NULL = not set
-- @source    mm/page-writeback.c wb_over_bg_thresh()
WITH
  held AS (
    SELECT l.bdi, sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle' AND in_time!(l.ts, b)
    GROUP BY l.bdi
  )
SELECT
  h.dur AS cost_task_ns,
  h.bdi, m.bg_thresh_bytes, m.thresh_bytes,
  CAST(
    (m.thresh_bytes - m.bg_thresh_bytes) * u.second_ns / d.disk_bytes_per_s
    AS INTEGER
  ) AS gap_ns,
  m.thresh_bytes / 4 AS background_bytes,
  u.dirty_background_bytes,
  u.dirty_background_ratio AS background_percent
FROM held AS h
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
CROSS JOIN dirty_limits AS m
JOIN wb_disk_rate AS d ON d.bdi = h.bdi
WHERE h.dur >= v.loss_least_ns
  -- A half of the limit is what the kernel takes by itself.
  AND m.bg_thresh_bytes > m.thresh_bytes * (1 - v.most_ratio)
  AND (m.thresh_bytes - m.bg_thresh_bytes) * u.second_ns
    < d.disk_bytes_per_s * v.long_call_ns
  AND m.thresh_bytes * u.second_ns >= d.disk_bytes_per_s * v.pause_max_ns
ORDER BY h.dur DESC, h.bdi;
