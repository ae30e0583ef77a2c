-- SPDX-License-Identifier: Apache-2.0
-- @finding   small_limit
-- @title     The dirty limit is too small for the disk
-- @summary   Tasks were throttled at a limit that their device writes in less
--   than the longest pause (200 ms): writers and disk stall in turns.
-- @when      small_limit
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} at a limit[ of {thresh_bytes}],
--   which {bdi} writes in[ {thresh_ns}][{soon:raw}][: the disk was idle for
--   {idle_ratio} of that time].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=small_limit,
--   bdi={bdi}); idle_ratio = 1 - mean(device_ratio, total_ns,
--   finding=small_limit, bdi={bdi})
-- @evidence  dirty_limits: thresh_bytes = max(thresh_bytes)
-- @evidence  disk_rates: thresh_ns = max(thresh_ns, bdi={bdi})
-- @advice    [Raise the limit to what {raised_bdi} writes in a
--   second{most:raw}.]
-- @set       vm.dirty_bytes = {proposed_bytes:raw}
-- @set       vm.dirty_background_bytes = {background_bytes:raw}
-- @now       [vm.dirty_bytes = {dirty_bytes:raw}][vm.dirty_ratio =
--   {dirty_percent:raw}]
-- @now       [vm.dirty_background_bytes =
--   {dirty_background_bytes:raw}][vm.dirty_background_ratio =
--   {background_percent:raw}]
-- @costs     Up to {proposed_bytes} more may be lost in a crash, and sync waits
--   for them.
-- @expect    [{expected:raw}]
-- @events    writeback:balance_dirty_pages
-- @column    confidence TEXT inferred where the device's requests were not
--   recorded
-- @column   thresh_bytes INTEGER mean dirty threshold of the machine
-- @column    thresh_ns INTEGER how long the device takes to write it
-- @column    soon TEXT less than a pause, where global_dirty_state was not
--   recorded; else NULL
-- @column    idle_ratio REAL share of the waits without a request on the
--   device; NULL = not recorded
-- @column    raised_bdi TEXT the device; NULL = the limit is as high already
-- @column    most TEXT what is proposed where that is less; empty where not
-- @column    expected TEXT what should fall then; NULL likewise
-- @column    proposed_bytes INTEGER what the device writes in a second; a fifth
--   of the memory at most
-- @column    background_bytes INTEGER half of that
-- @column    dirty_percent INTEGER vm.dirty_ratio now; NULL = not set
-- @column   dirty_background_bytes INTEGER vm.dirty_background_bytes now; NULL
--   = not set
-- @column    background_percent INTEGER as dirty_percent
-- @source    mm/page-writeback.c MAX_PAUSE
WITH
  wanted AS (
    SELECT d.bdi, u.round_bytes
        * (1 + CAST(d.disk_bytes_per_s / u.round_bytes AS INTEGER)) AS bytes
    FROM wb_disk_rate AS d
    CROSS JOIN wb_units AS u
  ),
  -- A disk that was seen in bursts only may look faster than it is.
  proposed AS (
    SELECT
      w.bdi,
      min(w.bytes, coalesce(u.most_bytes, w.bytes)) AS bytes,
      w.bytes > u.most_bytes AS is_most,
      min(w.bytes, coalesce(u.most_bytes, w.bytes))
        > max(coalesce(m.thresh_bytes, 0), coalesce(u.dirty_bytes, 0))
        AS is_more
    FROM wanted AS w
    CROSS JOIN wb_units AS u
    CROSS JOIN dirty_limits AS m
  )
SELECT
  t.cost_task_ns,
  CASE WHEN t.device_ratio IS NULL THEN 'inferred' ELSE 'measured' END
    AS confidence,
  t.tasks, t.bdi, m.thresh_bytes,
  CAST(m.thresh_bytes * u.second_ns / d.disk_bytes_per_s AS INTEGER)
    AS thresh_ns,
  CASE WHEN m.thresh_bytes IS NULL THEN ' less time than a pause takes' END
    AS soon,
  1 - t.device_ratio AS idle_ratio,
  CASE WHEN p.is_more THEN t.bdi END AS raised_bdi,
  CASE WHEN p.is_most THEN ', or to a fifth of the memory, which is less'
    ELSE ''
  END AS most,
  CASE WHEN p.is_more THEN 'throttle_summary.slept_total_ns lower' END
    AS expected,
  CASE WHEN p.is_more THEN p.bytes END AS proposed_bytes,
  CASE WHEN p.is_more THEN p.bytes / 2 END AS background_bytes,
  u.dirty_bytes,
  u.dirty_ratio AS dirty_percent,
  u.dirty_background_bytes,
  u.dirty_background_ratio AS background_percent,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
JOIN wb_disk_rate AS d ON d.bdi = t.bdi
JOIN proposed AS p ON p.bdi = t.bdi
CROSS JOIN dirty_limits AS m
WHERE t.finding = 'small_limit' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
