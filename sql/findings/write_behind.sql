-- SPDX-License-Identifier: Apache-2.0
-- @finding   write_behind
-- @title     Tasks wait for what they wrote before
-- @summary   Tasks called sync_file_range, which waits until the disk has
--   written a part of a file. A program that does so piece by piece limits
--   itself: it goes at the disk's speed, and little is dirty. Calls of more
--   than 2 s are counted by sync_waits or many_seconds.
-- @when      write_behind
-- @severity  note
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} in sync_file_range, the longest
--   {longest_ns}[: writing behind goes at the speed of {bdi}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=write_behind,
--   bdi={bdi}); longest_ns = max(max_ns, finding=write_behind, bdi={bdi})
-- @column   tasks TEXT who called it
-- @source    fs/sync.c ksys_sync_file_range()
SELECT t.cost_task_ns, t.tasks, t.bdi, t.longest_ns, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
WHERE t.finding = 'write_behind' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
