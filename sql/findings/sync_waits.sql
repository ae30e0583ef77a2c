-- SPDX-License-Identifier: Apache-2.0
-- @finding   sync_waits
-- @title     sync waits for the disk
-- @summary   Tasks waited in sync or fsync for the disk to write what had
--   gathered, and that was not much (else many_seconds tells it).
-- @when      many_seconds
-- @severity  note
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} in sync or fsync until what was
--   dirty was on the disk[ {bdi}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=many_seconds,
--   bdi={bdi})
-- @needs     wb_loss_total, wb_disk_rate, wb_dirty_extent, wb_rule, wb_units
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    tasks TEXT who lost it
-- @column    bdi TEXT the device; NULL = not known
-- @column    first_ts INTEGER ns, start of the first wait
-- @column    last_ts INTEGER ns, end of the last
-- @source    fs/sync.c
SELECT
  t.cost_task_ns,
  t.tasks,
  t.bdi,
  t.first_ts,
  t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
CROSS JOIN wb_dirty_extent AS m
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
WHERE t.finding = 'many_seconds'
  AND t.cost_task_ns >= v.loss_least_ns
  AND (
    d.bdi IS NULL
    OR m.dirty_max_bytes IS NULL
    OR d.busy_ns < v.long_call_ns
    OR m.dirty_max_bytes * u.second_ns / d.disk_bytes_per_s < v.worth_most_ns
  )
ORDER BY t.cost_task_ns DESC, t.bdi;
