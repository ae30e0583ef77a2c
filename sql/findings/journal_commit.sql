-- SPDX-License-Identifier: Apache-2.0

-- @finding   journal_commit
-- @title     Tasks wait for the journal to commit
-- @summary   Tasks waited in fsync, in write or in a system call that was not
--   recorded, while the journal of their file system committed: the few blocks
--   of a commit queue behind all that the flusher submitted before. Data of
--   files a commit of ext4 writes itself, by data=ordered, only where new
--   blocks are not unwritten extents first: up to Linux 5.5, with blocks
--   smaller than a page, or without delayed allocation (then "flushing" of
--   jbd2_run_stats is not 0). With data=journal a commit has all data of files
--   in it.
-- @when      journal_commit
-- @severity  warning
-- @confidence measured
-- @sentence  [{calls_count:call} of {call:raw} took {calls_mean_ns}][ each
--   (longest {calls_max_ns})][{full_stop:raw} ]{tasks} waited {cost_task_ns}
--   for the journal[ of {bdi}] to commit, the longest {longest_ns}[, while
--   writes of {writers:raw} to that disk were throttled][; the disk writes
--   {disk_bytes_per_s}, and up to {dirty_max_bytes} were dirty in all].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=journal_commit,
--   bdi={bdi}); longest_ns = max(max_ns, finding=journal_commit, bdi={bdi})
-- @evidence  disk_rates: disk_bytes_per_s = max(disk_bytes_per_s, bdi={bdi})
-- @evidence  dirty_limits: dirty_max_bytes = max(dirty_max_bytes)
-- @evidence  copy_and_sync: calls_count = sum(calls_count, phase={call:raw});
--   calls_mean_ns = sum(in_calls_ns, phase={call:raw}) / sum(calls_count,
--   phase={call:raw}); calls_max_ns = max(call_max_ns, phase={call:raw})
-- @advice    [{journaled_bdi} is mounted with data=journal: each commit writes
--   all data of files, which is written once more afterwards. Unmount it and
--   mount it with data=ordered, unless something needs that.][No limit helps:
--   {own_tasks} dirtied most of what was dirtied, and a lower one would
--   throttle them for as long. Start writeback as it is dirtied
--   (sync_file_range).][No task called fsync or the like: the journal of
--   {timed_bdi} commits by itself, every 5 s or as its mount option commit=
--   says, and when it is full. Put data that cannot wait on a file system of
--   its own.][Lower the limit to {proposed_bytes}, so that less can be queued
--   before a commit.][The limit of {limit_bytes} is low already: let programs
--   call fsync() less often, or give them a file system of their own.][No limit
--   helps where no more than {little_bytes} are dirty: let programs call
--   fsync() less often, or give them a file system of their own.][No limit
--   helps, and the trace does not show what made the journal of {unasked_bdi}
--   commit: wbscope record --profile deep shows whether a task calls fsync, or
--   it is the timer.][Lower the limit to {untold_bytes} if it is higher, which
--   is not known here: less can then be queued before a commit.][No lower
--   limit: {iops_bdi} writes requests of {request_bytes}, and the less is dirty
--   the fewer of them merge.][Let less gather for {other_bdi} alone, by a lower
--   max_ratio (from 6.2 on also strict_limit): vm.dirty_bytes would throttle
--   the writers of other disks.]
-- @set       vm.dirty_bytes = {proposed_bytes:raw}
-- @set       vm.dirty_background_bytes = {background_bytes:raw}
-- @now       [vm.dirty_bytes = {dirty_bytes:raw}][vm.dirty_ratio =
--   {dirty_percent:raw}]
-- @now       [vm.dirty_background_bytes =
--   {dirty_background_bytes:raw}][vm.dirty_background_ratio =
--   {background_percent:raw}]
-- @costs     [With {proposed_bytes} writers are throttled to the disk's speed
--   earlier, those of faster disks too.]
-- @expect    [{expected:raw}]
-- @optional  jbd2:jbd2_start_commit, jbd2:jbd2_end_commit, sched:sched_switch
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where no event tells that the journal
--   woke the tasks for nearly all of it: it only committed meanwhile; or where
--   the disk got much less than the pages that were written
-- @column    writers TEXT as in sync_waits
-- @column   background_bytes INTEGER background limit beside it: what it writes
--   in half a second; NULL = none is proposed
-- @column    journaled_bdi TEXT the device, where it has data=journal: nothing
--   else is then proposed
-- @column    timed_bdi TEXT the device, where no lower limit helps and nobody
--   called fsync; NULL = somebody did, or such calls were not recorded
-- @column    limit_bytes INTEGER the limit in force, where that is no higher
--   and somebody called fsync
-- @column    little_bytes INTEGER most that was dirty, where a limit that low
--   changes nothing, likewise
-- @column    unasked_bdi TEXT the device, where no limit helps and calls of
--   fsync were not recorded
-- @column   untold_bytes INTEGER what the device writes in two seconds, where
--   nothing tells the limit in force
-- @column    iops_bdi TEXT the device, where its writes are so small that a
--   lower limit would make it write less
-- @column    own_tasks TEXT who waited, where they dirtied most of it
--   themselves: nothing is then proposed
-- @column    expected TEXT what should fall with the proposed limit
-- @column    dirty_percent INTEGER vm.dirty_ratio now; NULL = not set
-- @column   dirty_background_bytes INTEGER setting now; NULL = not set
-- @column    background_percent INTEGER setting now; NULL = not set
-- @column    calls_count INTEGER calls of {call} in the run; NULL = none
--   recorded
-- @column    call TEXT the call that waits until data is on the disk and took
--   longest in all
-- @column    calls_mean_ns INTEGER how long one of these took
-- @column    calls_max_ns INTEGER the longest of these; NULL = there was one
-- @column    full_stop TEXT behind what is told of calls; NULL = nothing is
-- @source    fs/jbd2/commit.c jbd2_journal_commit_transaction();
--   fs/ext4/inode.c ext4_map_blocks(), ext4_should_dioread_nolock()
SELECT
  t.cost_task_ns,
  CASE WHEN t.longest_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  CASE
    WHEN d.reached_ratio IS NULL
      AND t.proved_ratio >= v.nearly_all_ratio
      THEN 'measured'
    ELSE 'inferred'
  END AS confidence,
  t.tasks, t.bdi, t.longest_ns, w.writers, d.disk_bytes_per_s,
  m.dirty_max_bytes,
  p.proposed_bytes, p.background_bytes,
  x.bdi AS journaled_bdi,
  CASE
    WHEN y.is_asked = 0 AND coalesce(p.limit_bytes, p.little_bytes) IS NOT NULL
      THEN t.bdi
  END AS timed_bdi,
  CASE WHEN y.is_asked = 1 THEN p.limit_bytes END AS limit_bytes,
  CASE WHEN y.is_asked = 1 THEN p.little_bytes END AS little_bytes,
  CASE
    WHEN y.is_asked IS NULL AND coalesce(p.limit_bytes, p.little_bytes) > 0
      THEN t.bdi
  END AS unasked_bdi,
  p.untold_bytes, p.other_bdi,
  CASE WHEN p.request_bytes > 0 THEN p.bdi END AS iops_bdi,
  p.request_bytes,
  CASE WHEN o.bdi IS NOT NULL AND x.bdi IS NULL THEN t.tasks END AS own_tasks,
  CASE WHEN p.proposed_bytes > 0 THEN 'stalls_by_task.max_ns lower' END
    AS expected,
  u.dirty_bytes,
  u.dirty_ratio AS dirty_percent,
  u.dirty_background_bytes,
  u.dirty_background_ratio AS background_percent,
  c.calls_count, c.call,
  c.mean_ns AS calls_mean_ns,
  c.max_ns AS calls_max_ns,
  c.full_stop,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN _sync_asked AS y
CROSS JOIN wb_units AS u
CROSS JOIN dirty_limits AS m
LEFT JOIN _data_journal AS x ON x.bdi = t.bdi
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
LEFT JOIN own_writes!('journal_commit', r) AS o ON o.bdi = t.bdi
-- Who waits for what it dirtied itself would be throttled for as long.
LEFT JOIN wb_disk_backlog AS p
  ON p.bdi = t.bdi AND x.bdi IS NULL AND o.bdi IS NULL
LEFT JOIN writers_beside!('journal_commit') AS w ON w.bdi = t.bdi
LEFT JOIN sync_calls!(n) AS c ON told_calls!(c, t)
WHERE t.finding = 'journal_commit' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;

-- @view     _sync_asked
-- @summary  Whether anybody called sync, fsync or the like, as far as all of
--   these calls were recorded.
-- @grain    one row
-- @column   is_asked INTEGER 1: somebody did; 0: nobody; NULL = not recorded
-- @source   fs/sync.c; a write to a file that is open with O_SYNC calls the
--   file system's fsync
CREATE VIEW _sync_asked AS
SELECT
  CASE
    WHEN EXISTS (SELECT 1 FROM raw_sys_enter_fsync)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_fdatasync)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_sync)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_syncfs)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_sync_file_range)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_msync)
      OR EXISTS (SELECT 1 FROM raw_ext4_sync_file_enter) THEN 1
    WHEN count(DISTINCT r.event) = 6 THEN 0
  END AS is_asked
FROM raw_event_format AS r
WHERE r.event IN (
  'syscalls:sys_enter_fsync', 'syscalls:sys_enter_fdatasync',
  'syscalls:sys_enter_sync', 'syscalls:sys_enter_syncfs',
  'syscalls:sys_enter_msync', 'ext4:ext4_sync_file_enter'
);

-- @view     _data_journal
-- @summary  Where all journals get the data of files, too: each ext3 and ext4
--   on the device is mounted with data=journal. Set in the file system itself
--   (tune2fs -o journal_data) or of single files (chattr +j) it is not seen.
-- @grain    device; order bdi
-- @key      bdi
-- @column   bdi TEXT major:minor, as other events name it
-- @source   Documentation/admin-guide/ext4.rst; fs/ext4/super.c
--   ext4_show_options()
-- @materialize
CREATE VIEW _data_journal AS
SELECT coalesce(n.bdi, m.device) AS bdi
FROM raw_mount AS m
LEFT JOIN wb_device AS n
  ON instr(n.partitions, ' ' || m.device || ' ') > 0
WHERE m.source GLOB '/dev/*' AND m.type GLOB 'ext[34]'
GROUP BY 1
HAVING min(',' || m.options || ',' GLOB '*,data=journal,*');
