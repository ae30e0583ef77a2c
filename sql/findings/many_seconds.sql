-- SPDX-License-Identifier: Apache-2.0
-- @finding   many_seconds
-- @title     More dirty pages than the disk writes in seconds
-- @summary   What was dirty takes the disk 5 s or more to write (big memory,
--   USB sticks): a task that calls sync or fsync, or needs such a page
--   (truncate), waits for it, and a crash loses it. A warning if a task waited,
--   else a note.
-- @severity  warning
-- @confidence measured
-- @sentence  [{dirty_max_bytes} were dirty, which {bdi} takes {dirty_max_ns} to
--   write][{held_bytes} were dirty for {bdi}, which writes
--   {disk_bytes_per_s}][Up to {wrote_bytes} were dirty for {bdi}, which writes
--   {disk_bytes_per_s}][{any_bytes} were dirty, perhaps all for {bdi}, which
--   writes {disk_bytes_per_s}][: {tasks} waited {sync_ns} {place:raw}][
--   ({calls_count:call} of {call:raw} took {calls_mean_ns}][ each, the
--   longest {calls_max_ns}][{bracket:raw}][; its
--   pages are compressed, or not all are written: {reached_ratio} of their
--   bytes reached the disk].
-- @evidence  dirty_limits: dirty_max_bytes = max(dirty_max_bytes); any_bytes =
--   max(dirty_max_bytes)
-- @evidence  disk_rates: dirty_max_ns = max(dirty_max_ns, bdi={bdi})
-- @evidence  bdi_dirty --bdi {bdi}: held_bytes = max(wb_dirty_max_bytes)
-- @evidence  disk_rates: wrote_bytes = max(written_bytes, bdi={bdi});
--   disk_bytes_per_s = max(disk_bytes_per_s, bdi={bdi})
-- @evidence  disk_rates: reached_ratio = max(reached_ratio, bdi={bdi})
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=many_seconds,
--   bdi={bdi}); sync_ns = sum(total_ns, finding=many_seconds, bdi={bdi})
-- @evidence  copy_and_sync: calls_count = sum(calls_count, phase={call:raw});
--   calls_mean_ns = sum(in_calls_ns, phase={call:raw}) / sum(calls_count,
--   phase={call:raw}); calls_max_ns = max(call_max_ns, phase={call:raw})
-- @advice    [No limit helps: {own_tasks} dirtied most of what was dirtied, and
--   a lower one would throttle them for as long. Start writeback as it is
--   dirtied (sync_file_range).][Lower the limit to {worth_bytes}, what {bdi}
--   writes in two seconds, and let the flusher start at what it writes in half
--   a second.][Lower the limit to {floor_bytes}: with so many CPUs, each of
--   which counts some pages by itself, the kernel keeps no lower one.][No lower
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
-- @costs     A copy is throttled to the disk's speed earlier[; the limit of
--   {proposed_bytes} holds for all disks].
-- @expect    {expected:raw}
-- @events    writeback:global_dirty_state
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where the disk gets much less than the
--   pages that are written
-- @column   tasks TEXT who lost it; NULL = nobody
-- @column    place TEXT in what, or for what they waited; NULL = nobody did
-- @column    expected TEXT what should fall with the proposed limit
-- @column    sync_ns INTEGER time that all tasks waited; NULL = nobody did
-- @column    dirty_max_ns INTEGER how long the device takes to write it
-- @column   held_bytes INTEGER most that was dirty for the device; NULL =
--   nothing tells, or nearly all was
-- @column   wrote_bytes INTEGER what it wrote, where nothing tells what was
--   dirty for it and the machine had more; else NULL
-- @column   any_bytes INTEGER most that the machine had dirty, where nothing
--   tells what was so for the device, and it wrote no less; else NULL
-- @column    disk_bytes_per_s REAL what the device writes while it is busy,
--   where others wrote, too
-- @column   reached_ratio REAL what the disk got, over the bytes of the pages
--   that were written, where that is much less (compression); else NULL
-- @column   worth_bytes INTEGER proposed_bytes, where that is what the device
--   writes in two seconds; else NULL
-- @column   floor_bytes INTEGER proposed_bytes, where that is the lowest limit
--   that is kept; else NULL
-- @column   background_bytes INTEGER background limit beside it: what it writes
--   in half a second; NULL = none is proposed
-- @column    iops_bdi TEXT the device, where its writes are so small that a
--   lower limit would make it write less
-- @column    own_tasks TEXT who waited, where they dirtied most of it
--   themselves: nothing is then proposed
-- @column    dirty_percent INTEGER vm.dirty_ratio now; NULL = not set
-- @column   dirty_background_bytes INTEGER vm.dirty_background_bytes now; NULL
--   = not set
-- @column    background_percent INTEGER as dirty_percent
-- @column    calls_count INTEGER calls of {call} in the run; NULL = none
--   recorded
-- @column    call TEXT the call that waits until data is on the disk and took
--   longest in all
-- @column    calls_mean_ns INTEGER how long one of these took
-- @column    calls_max_ns INTEGER the longest of these; NULL = there was one
-- @column    bracket TEXT behind what is told of calls; NULL = nothing is
-- @column   first_ts INTEGER ns, start of the first wait; NULL = none
-- @column   last_ts INTEGER ns, end of the last; NULL = none
-- @source    mm/page-writeback.c domain_dirty_limits()
WITH
  kinds AS (
    SELECT
      l.bdi,
      max(l.sync_call IS NOT NULL) AS has_sync,
      sync_place!(l) AS place
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'many_seconds' AND in_time!(l.ts, b)
    GROUP BY l.bdi
  )
SELECT
  coalesce(t.cost_task_ns, 0) AS cost_task_ns,
  CASE WHEN t.cost_task_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  CASE WHEN w.reached_ratio IS NULL THEN 'measured' ELSE 'inferred' END
    AS confidence,
  t.tasks, k.place,
  CASE WHEN k.has_sync = 0 THEN 'stalls_by_task.max_ns lower'
    ELSE 'copy_and_sync.sync_ns lower'
  END AS expected,
  w.bdi,
  t.cost_task_ns AS sync_ns,
  w.dirty_max_bytes,
  CASE WHEN w.dirty_max_bytes IS NOT NULL THEN w.backlog_ns END
    AS dirty_max_ns,
  w.held_bytes, w.wrote_bytes, w.any_bytes,
  CASE WHEN w.dirty_max_bytes IS NULL THEN w.disk_bytes_per_s END
    AS disk_bytes_per_s,
  w.reached_ratio, p.proposed_bytes, p.worth_bytes, p.floor_bytes,
  p.background_bytes, p.other_bdi,
  CASE WHEN p.request_bytes > 0 THEN p.bdi END AS iops_bdi,
  p.request_bytes,
  CASE WHEN o.bdi IS NOT NULL THEN t.tasks END AS own_tasks,
  u.dirty_bytes,
  u.dirty_ratio AS dirty_percent,
  u.dirty_background_bytes,
  u.dirty_background_ratio AS background_percent,
  c.calls_count, c.call,
  c.mean_ns AS calls_mean_ns,
  c.max_ns AS calls_max_ns,
  CASE WHEN c.calls_count > 0 THEN ')' END AS bracket,
  t.first_ts, t.last_ts
FROM wb_disk_backlog AS w
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
LEFT JOIN wb_loss_total AS t ON t.finding = 'many_seconds' AND t.bdi = w.bdi
LEFT JOIN kinds AS k ON k.bdi = w.bdi
LEFT JOIN own_writes!('many_seconds', r) AS o ON o.bdi = w.bdi
-- Who waits for what it dirtied itself would be throttled for as long.
LEFT JOIN wb_disk_backlog AS p ON p.bdi = w.bdi AND o.bdi IS NULL
LEFT JOIN sync_calls!(n) AS c ON told_calls!(c, t)
WHERE w.backlog_ns >= v.worth_most_ns
  -- Its rate is none, then.
  AND w.bdi NOT IN (
    SELECT h.device
    FROM wb_busy AS h
    CROSS JOIN wb_rule AS o
    LEFT JOIN wb_disk_rate AS r ON r.bdi = h.device
    WHERE is_hung!(h, o, r)
      AND h.device IN (SELECT q.device FROM wb_block_request AS q)
  )
  AND (w.place = 1 OR (w.place > 1 AND t.cost_task_ns >= v.loss_least_ns))
ORDER BY cost_task_ns DESC, w.bdi;
