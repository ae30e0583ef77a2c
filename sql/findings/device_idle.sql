-- SPDX-License-Identifier: Apache-2.0
-- @finding   device_idle
-- @title     The device is idle while its writers wait
-- @summary   Tasks were throttled while pages were under writeback and their
--   device had no request: something above the disk holds the requests back,
--   such as io.max, io.latency or blk-throttle of cgroup v1.
-- @when      device_idle
-- @severity  warning
-- @confidence inferred
-- @sentence  {tasks} waited {cost_task_ns} although {bdi} was idle for
--   {idle_ratio} of that time: their pages were under writeback, but requests
--   were held back above the disk, as[ {stacked_bdi} itself may do, or][
--   {mapped_bdi} does while suspended, or] io.max does[ (cgroup
--   {limited_cgroup_ino})].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=device_idle,
--   bdi={bdi}, cgroup_ino={cgroup_ino}); idle_ratio = 1 - mean(device_ratio,
--   total_ns, finding=device_idle, bdi={bdi}, cgroup_ino={cgroup_ino})
-- @advice    Raise or lift the limit[ of the cgroup {limited_cgroup_ino}, or of
--   one above it][, if there is one: the trace does not show whether
--   {stacked_bdi} had bios][, if there is one: {mapped_bdi} may have been
--   suspended, as for a snapshot][; while {bdi} was busy it wrote
--   {disk_bytes_per_s}]. If it has to stay, let the program write no faster.
-- @set       /sys/fs/cgroup{limited_cgroup_ino:path}/io.max =
--   {limited_bdi:raw} wbps=max wiops=max
-- @costs     Other users of that disk get less of it.
-- @expect    throttle_summary.slept_total_ns lower
-- @events    writeback:balance_dirty_pages, block:block_rq_issue
-- @column   cgroup_ino INTEGER cgroup that owns the wb
-- @column    limited_cgroup_ino INTEGER the same; NULL = the root, which has no
--   io.max
-- @column    limited_bdi TEXT the device, where it is a disk itself: io.max
--   takes no name, and a limit of a volume is one of the disk below; else NULL
-- @column    stacked_bdi TEXT the device, where it lies on disks and nothing
--   tells whether it had something to do itself; else NULL
-- @column    mapped_bdi TEXT the device, where it lies on disks, is no md, its
--   counters tell that it had nothing to do either, as device mapper does not
--   count what it keeps back, and no io.max can be on its writers, who are in
--   the root cgroup; else NULL
-- @column    idle_ratio REAL share of the waits without a request on the device
-- @column    disk_bytes_per_s REAL what it writes while it is busy; NULL =
--   not known, as above
-- @source    block/blk-throttle.c
SELECT
  t.cost_task_ns, t.tasks, t.bdi, t.cgroup_ino,
  nullif(t.cgroup_ino, 1) AS limited_cgroup_ino,
  CASE
    WHEN t.bdi GLOB '[0-9]*:[0-9]*'
      AND t.bdi NOT IN (SELECT k.bdi FROM wb_stack AS k)
      THEN t.bdi
  END AS limited_bdi,
  n.bdi AS stacked_bdi,
  CASE WHEN t.bdi NOT GLOB '9:*' AND coalesce(t.cgroup_ino, 1) = 1 THEN o.bdi
  END AS mapped_bdi,
  1 - t.device_ratio AS idle_ratio,
  CASE WHEN n.bdi IS NULL THEN d.disk_bytes_per_s END AS disk_bytes_per_s,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
LEFT JOIN (
  SELECT DISTINCT k.bdi
  FROM wb_stack AS k
  WHERE k.own_busy_ns IS NULL
) AS n ON n.bdi = t.bdi
LEFT JOIN (
  SELECT DISTINCT s.bdi
  FROM wb_stack AS s
  WHERE s.own_busy_ns > 0 AND s.bdi GLOB '[0-9]*:[0-9]*'
) AS o ON o.bdi = t.bdi
WHERE t.finding = 'device_idle'
  AND t.cost_task_ns >= v.loss_least_ns
  -- Between two requests a disk is idle for a moment, too, which holds no
  -- write up for long.
  AND (
    t.call_max_ns >= v.long_call_ns
    OR t.cost_task_ns >= v.most_ratio * (
      SELECT sum(l.dur)
      FROM wb_loss AS l
      CROSS JOIN wb_bounds AS b
      WHERE l.kind = 'throttle'
        AND l.bdi = t.bdi
        AND l.cgroup_ino IS t.cgroup_ino
        AND in_time!(l.ts, b)
    )
  )
ORDER BY t.cost_task_ns DESC, t.bdi, t.cgroup_ino;
