-- SPDX-License-Identifier: Apache-2.0
-- @finding   throttled_holder
-- @title     A throttled task holds a lock that others wait for
-- @summary   Tasks waited for another task, which woke them, and which slept in
--   balance_dirty_pages() for most of that time. A write is throttled with the
--   inode locked (i_rwsem): who writes to the same file waits as long, however
--   little that is. So does who needs another lock of that task.
-- @when      throttled_holder
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} (longest {longest_ns}) for a lock of
--   {holder}, which was itself throttled[ on {bdi}] for most of that.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=throttled_holder);
--   longest_ns = max(max_ns, finding=throttled_holder)
-- @advice    Let {holder} write less in one call, since a call keeps the inode
--   locked until its last page is dirtied, or give {tasks} a file apart.
-- @optional  sched:sched_switch, sched:sched_waking, wbscope:blocked,
--   writeback:balance_dirty_pages
-- @column    severity TEXT severe, where that was a fifth of the life of one;
--   warning or note
-- @column    confidence TEXT inferred where an interrupt may have woken them:
--   in which context it happened was not recorded
-- @column    holder TEXT the task that woke them, after the most of that time
-- @source    mm/filemap.c generic_perform_write(); fs/ext4/file.c
--   ext4_buffered_write_iter()
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.life_ratio >= v.held_least_ratio THEN 'severe'
    WHEN t.longest_ns >= v.long_call_ns THEN 'warning'
    ELSE 'note'
  END AS severity,
  CASE WHEN t.proved_ratio >= v.nearly_all_ratio THEN 'measured'
    ELSE 'inferred'
  END AS confidence,
  t.tasks, t.bdi, t.longest_ns, h.holder, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
LEFT JOIN holders!('throttled_holder') AS h ON h.bdi IS t.bdi AND h.place = 1
WHERE t.finding = 'throttled_holder' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
