-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_stall_count
-- @title    Waiting tasks
-- @order    20
-- @group    Stalls: Which tasks wait, for what, and why. Each moment of a task
--   counts once, for the innermost wait; docs/stalls.md has the causes.
-- @track    tasks in * [tasks]: tasks that wait in this way at this moment
-- @summary  How many tasks wait at a time, by kind of wait.
-- @grain    change of one curve; order ts
-- @sorted
-- @events   writeback:balance_dirty_pages
--   |writeback:writeback_balance_dirty_pages_waiting
--   |vmscan:mm_vmscan_direct_reclaim_begin
--   |vmscan:mm_vmscan_memcg_reclaim_begin
--   |vmscan:mm_vmscan_node_reclaim_begin|vmscan:mm_vmscan_throttled
--   |writeback:writeback_congestion_wait|writeback:writeback_wait_iff_congested
--   |writeback:folio_wait_writeback|writeback:wait_on_page_writeback
--   |ext4:ext4_sync_file_enter|jbd2:jbd2_lock_buffer_stall
--   |xfs:xfs_log_grant_sleep|xfs:xfs_log_cil_wait|block:block_rq_issue
--   |nfs:nfs_fsync_enter|nfs:nfs_writeback_inode_enter|fuse:fuse_request_send
--   |syscalls:sys_enter_fsync
--   |syscalls:sys_enter_fdatasync|syscalls:sys_enter_sync
--   |syscalls:sys_enter_syncfs|syscalls:sys_enter_sync_file_range
--   |syscalls:sys_enter_msync|syscalls:sys_enter_write
--   |syscalls:sys_enter_pwrite64|syscalls:sys_enter_writev
--   |syscalls:sys_enter_pwritev|syscalls:sys_enter_pwritev2
-- @optional sched:sched_switch
-- @cost     190
CREATE VIEW tl_stall_count AS
WITH
  border AS (
    SELECT p.from_ts AS ts, w.kind, 1 AS step
    FROM wb_wait_piece AS p
    JOIN wb_wait AS w ON w.wait_id = p.wait_id
    UNION ALL
    SELECT p.to_ts, w.kind, -1
    FROM wb_wait_piece AS p
    JOIN wb_wait AS w ON w.wait_id = p.wait_id
  ),
  change AS (
    SELECT b.ts, b.kind, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.kind, b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Stalls/tasks in ' || c.kind AS track,
  NULL AS name,
  sum(c.step) OVER (
    PARTITION BY c.kind ORDER BY c.ts ROWS UNBOUNDED PRECEDING
  ) AS value,
  'tasks' AS unit
FROM change AS c;
