-- SPDX-License-Identifier: Apache-2.0
-- @finding   frozen
-- @title     A file system was frozen
-- @summary   Tasks waited until a program that freezes and thaws file systems
--   woke them: fsfreeze, dmsetup or LVM for a snapshot, the guest agent of QEMU
--   for a backup. Meanwhile nothing can be written to it.
-- @when      frozen
-- @severity  warning
-- @confidence inferred
-- @sentence  {tasks} waited {cost_task_ns} (longest {longest_ns})[ on {bdi}]
--   until {holder}, which freezes and thaws file systems, ended the wait.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=frozen);
--   longest_ns = max(max_ns, finding=frozen)
-- @advice    Freeze for a shorter time: sync before, and thaw as soon as the
--   snapshot is taken.
-- @optional  sched:sched_switch, sched:sched_waking, wbscope:blocked
-- @column    severity TEXT warning or note
-- @column    holder TEXT the program that woke them, after the most of that
--   time; what it is is told from its name
-- @source    fs/super.c freeze_super(), thaw_super()
SELECT
  t.cost_task_ns,
  CASE WHEN t.longest_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  t.tasks, t.bdi, t.longest_ns, h.holder, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
LEFT JOIN holders!('frozen') AS h ON h.bdi IS t.bdi AND h.place = 1
WHERE t.finding = 'frozen' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
