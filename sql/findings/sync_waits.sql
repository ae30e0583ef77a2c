-- SPDX-License-Identifier: Apache-2.0
-- @finding   sync_waits
-- @title     sync waits for the disk
-- @summary   Tasks waited in sync, in fsync or for pages under writeback until
--   the disk had written what had gathered, and that was not much (else it is
--   many_seconds). A warning where one waited for half a second or more, or for
--   a fifth of its life with an idle disk, else a note. Beside throttled
--   writers a sync waits in the queue of the disk behind their pages. Where the
--   disk had no request for most of that time, it is not the disk that they
--   waited for.
-- @when      many_seconds
-- @severity  warning
-- @confidence measured
-- @sentence  [{calls_count:call} of {call:raw} took {calls_mean_ns}][ each
--   (longest {calls_max_ns})][{full_stop:raw} ]{tasks} waited {cost_task_ns}
--   {place:raw} until what was dirty was written[ to {bdi}], the longest
--   {longest_ns}[, while writes of {writers} to that disk were throttled][;
--   {mate:raw} wrote to {mate_bdi}, which lies on the same disk][; the disk was
--   idle for {idle_ratio} of that time][: something before it holds the writes
--   back, such as {holder:raw}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=many_seconds,
--   bdi={bdi}); longest_ns = max(max_ns, finding=many_seconds, bdi={bdi});
--   idle_ratio = 1 - mean(device_ratio, total_ns, finding=many_seconds,
--   bdi={bdi})
-- @evidence  copy_and_sync: calls_count = sum(calls_count, phase={call:raw});
--   calls_mean_ns = sum(in_calls_ns, phase={call:raw}) / sum(calls_count,
--   phase={call:raw}); calls_max_ns = max(call_max_ns, phase={call:raw})
-- @advice    [With {idle_bdi} idle for so long, neither a limit nor a faster
--   disk helps much: look at what comes before it: io.max of the cgroup, or
--   what the CPU is needed for (blocks for many small files, compression,
--   encryption).][Lower the limit to {proposed_bytes}, so
--   that little is queued before what has to be on the disk now.][The limit of
--   {limit_bytes} is low already: let programs sync less often, or only the
--   file that matters (fsync, sync_file_range).][No limit helps where no more
--   than {little_bytes} are dirty: let programs sync less often, or only the
--   file that matters (fsync, sync_file_range).][Lower the limit to
--   {untold_bytes} if it is higher, which is not known here: little is then
--   queued before what has to be on the disk now.][Let less gather for
--   {other_bdi} alone, by a lower max_ratio (from 6.2 on also strict_limit):
--   vm.dirty_bytes would throttle the writers of other disks.]
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
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where nothing tells what held the writes
--   back
-- @column    title TEXT what it is where nobody was in sync or fsync
-- @column    place TEXT in what, or for what they waited
-- @column    idle_ratio REAL share of the waits without a request on the
--   device, where that is most of the time; NULL = it was busy, or not known
-- @column    idle_bdi TEXT the device, likewise: no other advice is given
-- @column    holder TEXT what may have held the writes back, where the disk was
--   idle nearly all the time; less is what a CPU needs between requests
-- @column    writers TEXT names of the tasks that were throttled for pages of
--   this device during a wait of half a second and more; NULL = none
-- @column    mate TEXT who wrote most to another device on the same disk; NULL
--   = none did
-- @column    mate_bdi TEXT that device
-- @column   background_bytes INTEGER background limit beside it: what it writes
--   in half a second; NULL = none is proposed
-- @column    limit_bytes INTEGER the limit in force, where that is no higher
-- @column    little_bytes INTEGER most that was dirty, where a limit that low
--   changes nothing
-- @column   untold_bytes INTEGER what the device writes in two seconds, where
--   nothing tells the limit in force
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
-- @source    fs/sync.c
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
  ),
  -- Whichever disk was waited for: any writes it in so short a time.
  machine AS (
    SELECT m.dirty_max_bytes
    FROM wb_disk_rate AS d
    CROSS JOIN dirty_limits AS m
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    GROUP BY m.dirty_max_bytes, v.little_most_ns, u.second_ns
    HAVING 1.0 * m.dirty_max_bytes * u.second_ns
      <= min(d.disk_bytes_per_s) * v.little_most_ns
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.longest_ns >= v.long_call_ns THEN 'warning'
    -- Each is short, and the disk has little to do: something holds it back.
    WHEN t.device_ratio < v.most_ratio
      AND t.life_ratio >= v.held_least_ratio
      AND t.cost_task_ns >= v.long_call_ns
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  CASE WHEN t.device_ratio < 1 - v.nearly_all_ratio THEN 'inferred'
    ELSE 'measured'
  END AS confidence,
  CASE
    WHEN k.has_sync = 0 THEN 'Tasks wait for pages under writeback'
    WHEN t.device_ratio < v.most_ratio
      THEN 'Tasks wait in sync while the disk has little to do'
  END AS title,
  t.tasks, k.place, t.bdi, t.longest_ns,
  CASE WHEN t.device_ratio < v.most_ratio THEN 1 - t.device_ratio END
    AS idle_ratio,
  CASE WHEN t.device_ratio < v.most_ratio THEN t.bdi END AS idle_bdi,
  CASE WHEN t.device_ratio < 1 - v.nearly_all_ratio THEN 'io.max' END AS holder,
  w.writers, d.mate, d.mate_bdi, a.proposed_bytes, a.background_bytes,
  CASE WHEN k.has_sync = 1 THEN a.limit_bytes END AS limit_bytes,
  CASE
    WHEN k.has_sync = 1 AND t.bdi IS NULL THEN m.dirty_max_bytes
    WHEN k.has_sync = 1 THEN a.little_bytes
  END AS little_bytes,
  a.untold_bytes, a.other_bdi,
  CASE WHEN a.proposed_bytes > 0 THEN 'stalls_by_task.max_ns lower' END
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
CROSS JOIN wb_units AS u
LEFT JOIN wb_disk_backlog AS p ON p.bdi = t.bdi
-- No limit is to blame where the disk had nothing to do.
LEFT JOIN wb_disk_backlog AS a
  ON a.bdi = t.bdi AND coalesce(t.device_ratio, 1) >= v.most_ratio
LEFT JOIN writers_beside!('many_seconds') AS w ON w.bdi = t.bdi
LEFT JOIN same_disk!(z) AS d ON d.bdi = t.bdi AND d.place = 1
JOIN kinds AS k ON k.bdi IS t.bdi
LEFT JOIN machine AS m ON 1 = 1
LEFT JOIN sync_calls!(n) AS c ON told_calls!(c, t)
WHERE t.finding = 'many_seconds'
  AND t.cost_task_ns >= v.loss_least_ns
  AND (
    p.bdi IS NULL OR p.place IS NULL OR p.backlog_ns IS NULL
    OR p.backlog_ns < v.worth_most_ns
  )
ORDER BY t.cost_task_ns DESC, t.bdi;
