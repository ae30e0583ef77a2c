-- SPDX-License-Identifier: Apache-2.0
-- @finding   fsync_storm
-- @title     Too many fsyncs
-- @summary   Ten fsyncs a second or more waited on one device: each waits for a
--   commit of the journal, and the device does little else.
-- @when      fsync_storm
-- @severity  warning
-- @confidence measured
-- @sentence  [{calls_count:call} of {call:raw} took {calls_mean_ns} each
--   (longest {calls_max_ns}): {tasks} waited {journal_ns} for the journal of
--   {bdi}][ and {data_ns} for their data][{tasks} waited {told_ns} for the
--   journal of {bdi}: {fsync_ns} of it in {fsyncs_count} syncs of files,
--   {mean_ns} in each].
-- @evidence  lost_time: journal_ns = sum(total_ns, finding=fsync_storm,
--   bdi={bdi}) - sum(total_ns, finding=fsync_storm, bdi={bdi}, kind=folio
--   wait); data_ns = sum(total_ns, finding=fsync_storm, bdi={bdi}, kind=folio
--   wait); told_ns = sum(total_ns, finding=fsync_storm, bdi={bdi})
-- @evidence  copy_and_sync: calls_count = sum(calls_count, phase={call:raw});
--   calls_mean_ns = sum(in_calls_ns, phase={call:raw}) / sum(calls_count,
--   phase={call:raw}); calls_max_ns = max(call_max_ns, phase={call:raw})
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
-- @column    told_ns INTEGER cost_task_ns, without recorded system calls
-- @column    fsyncs_count INTEGER fsyncs that waited
-- @column    fsync_ns INTEGER time lost in these, without the waits for pages
--   and requests inside
-- @column    mean_ns INTEGER the same in each
-- @column    journal_ns INTEGER of the waits, what was none for a page; NULL =
--   system calls were not recorded
-- @column    data_ns INTEGER of the waits, for pages; NULL likewise, or none
-- @column    calls_count INTEGER calls of {call} in the run; NULL = none
--   recorded
-- @column    call TEXT the call that waits until data is on the disk and took
--   longest in all
-- @column    calls_mean_ns INTEGER how long one of these took
-- @column    calls_max_ns INTEGER the longest of these
-- @source    fs/ext4/fsync.c ext4_sync_file()
WITH
  called AS (
    SELECT
      l.bdi,
      sum(l.kind = 'fsync') AS fsyncs_count,
      sum(CASE l.kind WHEN 'fsync' THEN l.dur END) AS fsync_ns,
      sum(CASE l.kind WHEN 'folio wait' THEN l.dur END) AS data_ns
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'fsync_storm' AND in_time!(l.ts, b)
    GROUP BY l.bdi
  )
SELECT
  t.cost_task_ns, t.tasks, t.bdi,
  CASE WHEN k.call IS NULL THEN t.cost_task_ns END AS told_ns,
  CASE WHEN k.call IS NULL THEN c.fsyncs_count END AS fsyncs_count,
  CASE WHEN k.call IS NULL THEN c.fsync_ns END AS fsync_ns,
  CASE WHEN k.call IS NULL THEN c.fsync_ns / c.fsyncs_count END AS mean_ns,
  CASE WHEN k.call IS NOT NULL THEN t.cost_task_ns - coalesce(c.data_ns, 0) END
    AS journal_ns,
  CASE WHEN k.call IS NOT NULL THEN c.data_ns END AS data_ns,
  k.calls_count, k.call,
  k.mean_ns AS calls_mean_ns,
  k.max_ns AS calls_max_ns,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
JOIN called AS c ON c.bdi = t.bdi AND c.fsyncs_count > 0
LEFT JOIN sync_calls!(n) AS k ON told_calls!(k, t)
WHERE t.finding = 'fsync_storm' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
