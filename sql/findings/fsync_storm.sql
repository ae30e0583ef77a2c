-- SPDX-License-Identifier: Apache-2.0
-- @finding   fsync_storm
-- @title     Too many fsyncs
-- @summary   Ten fsyncs a second or more waited on one device: each waits for a
--   commit of the journal, and the device does little else.
-- @when      fsync_storm
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for the journal of {bdi}: {fsync_ns}
--   of it in {fsyncs_count} calls of fsync, {mean_ns} in each.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=fsync_storm,
--   bdi={bdi}); fsync_ns = sum(total_ns, finding=fsync_storm, kind=fsync,
--   bdi={bdi}); fsyncs_count = sum(stalls_count, finding=fsync_storm,
--   kind=fsync, bdi={bdi}); mean_ns = sum(total_ns, finding=fsync_storm,
--   kind=fsync, bdi={bdi}) / sum(stalls_count, finding=fsync_storm,
--   kind=fsync, bdi={bdi})
-- @advice    Let programs sync less often: group what belongs together into one
--   fsync (commit_delay, group commit, batches), or put the journal on a device
--   with a write cache that survives a power loss.
-- @costs     What was not yet synced is lost in a crash.
-- @expect    stalls_by_task.total_ns lower
-- @optional  syscalls:sys_enter_fsync, ext4:ext4_sync_file_enter
-- @column    fsyncs_count INTEGER fsyncs that waited
-- @column    fsync_ns INTEGER time lost in these, without the waits for pages
--   and requests inside
-- @column    mean_ns INTEGER the same in each
-- @source    fs/ext4/fsync.c ext4_sync_file()
WITH
  called AS (
    SELECT l.bdi, count(*) AS fsyncs_count, sum(l.dur) AS fsync_ns
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'fsync_storm'
      AND l.kind = 'fsync'
      AND in_time!(l.ts, b)
    GROUP BY l.bdi
  )
SELECT
  t.cost_task_ns, t.tasks, t.bdi, c.fsyncs_count, c.fsync_ns,
  c.fsync_ns / c.fsyncs_count AS mean_ns,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
JOIN called AS c ON c.bdi = t.bdi
WHERE t.finding = 'fsync_storm' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
