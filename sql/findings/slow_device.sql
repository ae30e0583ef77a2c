-- SPDX-License-Identifier: Apache-2.0
-- @finding   slow_device
-- @title     A device is slower than its writers
-- @summary   Tasks were throttled at the machine's limits while their own
--   device had requests all the time and its own wb held its share: they want
--   more than the device can write. A warning where one write was held for half
--   a second or more, as happens when writers run into the limit; else
--   throttling did its work.
-- @when      slow_device
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for {bdi}, which[ writes
--   {disk_bytes_per_s} and] is slower than its writers[; it is slow itself, for
--   what lies below it was busy for {below_ratio} of its time][; its pages are
--   compressed, or not all are written: {reached_ratio} of their bytes reached
--   the disk][; one write was held for {call_least:raw}{call_max_ns}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=slow_device,
--   bdi={bdi}); call_max_ns = max(call_max_ns, finding=slow_device, bdi={bdi})
-- @evidence  disk_rates: disk_bytes_per_s = max(disk_bytes_per_s, bdi={bdi});
--   below_ratio = max(below_ratio, bdi={bdi}); reached_ratio =
--   max(reached_ratio, bdi={bdi})
-- @advice    [No setting makes {disk_bdi} faster.][{loop_bdi} is as fast as
--   what its file lies on, or slower (loop_device).] Let its writers[ write no
--   more than {disk_bytes_per_s} in all, or] start writing as they go
--   (sync_file_range), or bypass the page cache (O_DIRECT), so that no write
--   waits for another's pages.
-- @costs     The program takes as long as the disk does, which it does anyway.
-- @expect    throttle_summary.call_max_ns lower
-- @needs     wb_loss_total, wb_disk_rate, wb_watched, wb_rule
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where the device's requests were not
--   recorded
-- @column    tasks TEXT who lost it
-- @column    bdi TEXT the device
-- @column    disk_bdi TEXT the device, where it is no loop device
-- @column    loop_bdi TEXT the device, where it is one (7:*)
-- @column    disk_bytes_per_s REAL what it writes while it is busy
-- @column    reached_ratio REAL what the disk got, over the bytes of the pages
--   that were written, where that is much less (compression); else NULL
-- @column    below_ratio REAL of a device that lies on disks and is slow itself
--   (dm-crypt): how long these were busy, over its own time; else NULL
-- @column    call_max_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up, of those that were held up longest so
-- @column    call_least TEXT at least, where writes were not recorded; else
--   empty
-- @column    first_ts INTEGER ns, start of the first wait
-- @column    last_ts INTEGER ns, end of the last
-- @source    mm/page-writeback.c balance_dirty_pages()
SELECT
  t.cost_task_ns,
  CASE WHEN t.call_max_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  CASE WHEN t.device_ratio IS NULL THEN 'inferred' ELSE 'measured' END
    AS confidence,
  t.tasks,
  t.bdi,
  CASE WHEN t.bdi GLOB '7:*' THEN NULL ELSE t.bdi END AS disk_bdi,
  CASE WHEN t.bdi GLOB '7:*' THEN t.bdi END AS loop_bdi,
  d.disk_bytes_per_s,
  d.reached_ratio,
  d.below_ratio,
  t.call_max_ns,
  CASE WHEN o.has_calls THEN '' ELSE 'at least ' END AS call_least,
  t.first_ts,
  t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_watched AS o
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
WHERE t.finding = 'slow_device' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
