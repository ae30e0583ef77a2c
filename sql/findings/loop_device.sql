-- SPDX-License-Identifier: Apache-2.0
-- @finding   loop_device
-- @title     A loop device's pages are dirty twice
-- @summary   Tasks wrote to a loop device (7:*): its pages are dirty once in
--   the file system on it and once more in the file below, both in one pool.
-- @severity  note
-- @confidence inferred
-- @sentence  {bdi} is a loop device, whose pages are dirty twice: on it and in
--   the file below it[; its writers waited {held_ns}].
-- @evidence  lost_time: held_ns = sum(total_ns, kind=throttle, bdi={bdi});
--   cost_task_ns = sum(total_ns, kind=throttle, bdi={bdi})
-- @advice    Set up the loop device with direct I/O (losetup --direct-io=on).
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that its writers were held up
-- @column   bdi TEXT the loop device
-- @column    held_ns INTEGER the same; NULL = they were not
-- @source    drivers/block/loop.c
WITH
  device AS (
    SELECT DISTINCT t.bdi
    FROM raw_balance_dirty_pages AS t
    WHERE is_step!(t) AND t.bdi GLOB '7:*'
  ),
  held AS (
    SELECT l.bdi, sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle' AND in_time!(l.ts, b)
    GROUP BY l.bdi
  )
SELECT
  coalesce(h.dur, 0) AS cost_task_ns,
  d.bdi,
  h.dur AS held_ns
FROM device AS d
LEFT JOIN held AS h ON h.bdi = d.bdi
ORDER BY cost_task_ns DESC, d.bdi;
