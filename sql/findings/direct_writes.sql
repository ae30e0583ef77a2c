-- SPDX-License-Identifier: Apache-2.0
-- @finding   direct_writes
-- @title     Tasks wait for their own writes to a disk
-- @summary   Tasks sent writes to a disk themselves and waited for them, as
--   direct I/O does. Such writes dirty no page, no limit governs them, and no
--   counter of dirty pages includes them.
-- @when      direct_writes
-- @severity  note
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for direct I/O to {bdi}, or
--   writes like it, the longest {longest_ns}[; {written_bytes} were written to
--   it in all].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=direct_writes,
--   bdi={bdi}); longest_ns = max(max_ns, finding=direct_writes, bdi={bdi})
-- @evidence  disk_rates: written_bytes = max(written_bytes, bdi={bdi})
-- @events    block:block_rq_issue, block:block_rq_complete
-- @column    written_bytes INTEGER all that the device wrote; NULL = not known
-- @source    Documentation/block/biodoc.rst; block/fops.c
SELECT
  t.cost_task_ns, t.tasks, t.bdi, t.longest_ns,
  CAST(d.written_bytes AS INTEGER) AS written_bytes,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
LEFT JOIN wb_disk_rate AS d ON d.bdi = t.bdi
WHERE t.finding = 'direct_writes' AND t.cost_task_ns >= v.long_call_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
