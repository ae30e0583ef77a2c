-- SPDX-License-Identifier: Apache-2.0
-- @finding   swap_competes
-- @title     Swap competes with the files for the disk
-- @summary   Memory was short, and swap lies on a disk that files are written
--   to: tasks waited in reclaim, for swap's pages and for the disk. Where swap
--   has a disk of its own, only waits for swap's pages count.
-- @when      swap_competes
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for memory: [{swapped_count} ]pages
--   of swap went to[ {swap_bdi},] {place:raw}.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=swap_competes)
-- @evidence  reclaim_destinations: swapped_count = max(pages_count,
--   destination=swap device)
-- @advice    Put swap on {better:raw} device or on zram, or let less run at a
--   time. A low vm.swappiness does not help where all else in memory is in use.
-- @optional  vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage,
--   vmscan:mm_vmscan_direct_reclaim_begin
-- @column    title TEXT where swap is not known to share a disk with files;
--   NULL = as above
-- @column    severity TEXT severe where most of it was lost by tasks that were
--   never throttled for dirtying; else warning
-- @column    confidence TEXT inferred where nothing tells on which of several
--   disks swap lies
-- @column    swap_bdi TEXT the device that swap lies on; NULL = not known
-- @column    place TEXT what else that device is for
-- @column    better TEXT which device were better
-- @column    swapped_count INTEGER pages that went to the swap device;
--   NULL = not known
-- @source    mm/vmscan.c, mm/page_io.c swap_writepage()
SELECT
  t.cost_task_ns,
  CASE s.is_shared WHEN 0 THEN 'Tasks wait for swap' END AS title,
  CASE
    WHEN t.cost_task_ns * v.most_ratio <= (
      SELECT sum(l.dur)
      FROM wb_loss AS l
      CROSS JOIN wb_bounds AS b
      WHERE l.finding = t.finding
        AND l.task_id NOT IN (
          SELECT h.task_id FROM wb_throttle AS h WHERE h.is_step = 1
        )
        AND in_time!(l.ts, b)
    )
      THEN 'severe'
    ELSE 'warning'
  END AS severity,
  CASE
    WHEN s.is_shared = 1 OR s.is_told = 1 THEN 'measured'
    ELSE 'inferred'
  END AS confidence,
  t.tasks,
  coalesce(s.area_bdi, s.only_bdi) AS swap_bdi,
  CASE
    WHEN s.is_shared = 1 THEN 'the disk that the files are written to'
    WHEN s.only_count > 0 THEN 'a disk of its own'
    ELSE 'its device'
  END AS place,
  CASE s.is_shared WHEN 1 THEN 'another' ELSE 'a faster' END AS better,
  d.device_count AS swapped_count,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN reclaim_run AS d
CROSS JOIN wb_swap AS s
WHERE t.finding = 'swap_competes' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC;
