-- SPDX-License-Identifier: Apache-2.0
-- @finding   strict_limit
-- @title     A device's own limit stops its writers
-- @summary   Tasks were throttled by the limit of their own bdi (strict_limit
--   and max_ratio; FUSE always has it), while the machine had room. The disk
--   may also be busy: below the machine's limits its writers would not wait.
-- @when      strict_limit
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for the own limit of {bdi}
--   (strict_limit, max_ratio), although the machine had room[ and the disk was
--   idle for {idle_ratio} of that time][; the disk was also busy for
--   {busy_ratio} of that time].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=strict_limit,
--   bdi={bdi}); idle_ratio = 1 - mean(device_ratio, total_ns,
--   finding=strict_limit, bdi={bdi}); busy_ratio = mean(device_ratio, total_ns,
--   finding=strict_limit, bdi={bdi})
-- @advice    Lift the limit[, or raise max_ratio to what the disk writes in a
--   second ({max_percent} %)][: the bdi of FUSE has it always, and strict_limit
--   = 0 lifts it ({fuse_bdi})].
-- @set       /sys/class/bdi/{bdi:raw}/strict_limit = {lax:raw}
-- @set       /sys/class/bdi/{bdi:raw}/max_ratio = {max_percent:raw}
-- @now       [/sys/class/bdi/{bdi:raw}/strict_limit = {strict:raw}]
-- @costs     {bdi} may fill more of the pool that all writers share.
-- @expect    throttle_summary.slept_total_ns lower
-- @events    writeback:balance_dirty_pages
-- @column    confidence TEXT inferred where nothing tells which disk the device
--   lies on, so that it may be the disk
-- @column    idle_ratio REAL share of the waits without a request on the
--   device, where it was most of them
-- @column    busy_ratio REAL share with one, where it was most of them
-- @column    fuse_bdi TEXT the device, where it is one without a disk (0:*)
-- @column    max_percent INTEGER per cent of the limit that it writes in a
--   second; NULL = not known, or it has as much
-- @column    strict INTEGER 1: the kernel has a file to change that, from 6.2
--   on; NULL = it has none
-- @column    lax INTEGER 0 likewise
-- @source    mm/page-writeback.c wb_position_ratio(): BDI_CAP_STRICTLIMIT
SELECT
  t.cost_task_ns,
  CASE WHEN t.wrote_disks IS NULL THEN 'measured' ELSE 'inferred' END
    AS confidence,
  t.tasks, t.bdi,
  CASE WHEN t.device_ratio < v.most_ratio THEN 1 - t.device_ratio END
    AS idle_ratio,
  CASE WHEN t.device_ratio >= v.most_ratio THEN t.device_ratio END
    AS busy_ratio,
  CASE WHEN t.bdi GLOB '0:*' THEN t.bdi END AS fuse_bdi,
  -- What it has already is no advice.
  CASE
    WHEN d.disk_bytes_per_s / m.thresh_bytes > l.wb_limit_bytes / l.limit_bytes
      THEN min(
        100,
        max(1, CAST(100 * d.disk_bytes_per_s / m.thresh_bytes + 0.5 AS INTEGER))
      )
  END AS max_percent,
  CASE WHEN coalesce(k.version, 6002) >= 6002 THEN 1 END AS strict,
  CASE WHEN coalesce(k.version, 6002) >= 6002 THEN 0 END AS lax,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS k
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
CROSS JOIN dirty_limits AS m
LEFT JOIN (
  SELECT
    c.bdi,
    avg(c.wb_limit_bytes) AS wb_limit_bytes,
    avg(c.limit_bytes) AS limit_bytes
  FROM wb_throttle_cause AS c
  WHERE c.cause = 'strictlimit'
  GROUP BY c.bdi
) AS l ON l.bdi = t.bdi
WHERE t.finding = 'strict_limit'
  AND t.cost_task_ns >= v.loss_least_ns
  -- Where the disk is what limits, a few waits begin while it has just ended.
  AND t.cost_task_ns >= v.most_ratio * (
    SELECT sum(o.cost_task_ns)
    FROM wb_loss_total AS o
    WHERE o.bdi = t.bdi
      AND o.finding IN ('strict_limit', 'slow_device', 'no_writeback')
  )
ORDER BY t.cost_task_ns DESC, t.bdi;
