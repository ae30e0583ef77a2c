-- SPDX-License-Identifier: Apache-2.0
-- @finding   disk_unknown
-- @title     The disk below a device is unknown
-- @summary   Tasks were throttled at the machine's limits, and their device has
--   no block request, while other devices wrote: it lies on some of these (LVM,
--   dm-crypt, md, btrfs). Whether its disk was too slow, idle or held back is
--   not known.
-- @when      disk_unknown
-- @severity  warning
-- @confidence inferred
-- @sentence  The trace does not show why {tasks} waited {cost_task_ns} for
--   {bdi}: it has no block requests (LVM, dm-crypt, md, btrfs), and the disks
--   below it are unknown ({disks:raw} wrote).
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=disk_unknown,
--   bdi={bdi})
-- @advice    Record with wbscope record, which notes it, or write the file
--   stacks into the run folder by hand: a line for each disk of {bdi}, such as
--   {bdi:raw} {disk:raw}.
-- @events    writeback:balance_dirty_pages, block:block_rq_complete
-- @column    disk TEXT major:minor of what wrote most
-- @column    disks TEXT all that wrote, in words
-- @source    docs/record.md
SELECT
  t.cost_task_ns, t.tasks, t.bdi,
  t.wrote_disk AS disk,
  t.wrote_disks AS disks,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
WHERE t.finding = 'disk_unknown' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
