-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_stall_task
-- @title    Waits of each task
-- @order    21
-- @group    Stalls
-- @track    *: what this task waited for at each moment: the innermost wait,
--   and its cause. The whole waits, with all values, are on its thread
-- @summary  What each task waited for at each moment, the task that waited
--   longest first.
-- @grain    piece of a wait; order ts
-- @needs    wb_wait_piece, wb_stall, wb_task_label
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
-- @column   arg_kind TEXT as in stalls
-- @column   arg_cause TEXT as in stalls
-- @column   arg_bdi TEXT backing device; NULL = not known
CREATE VIEW tl_stall_task AS
WITH
  piece AS (
    SELECT
      p.from_ts,
      p.to_ts,
      s.wait_id,
      s.tid,
      s.task_id,
      s.comm,
      s.kind,
      s.cause,
      s.bdi
    FROM wb_wait_piece AS p
    JOIN wb_stall AS s ON s.wait_id = p.wait_id
  ),
  summed AS (
    SELECT
      p.*,
      sum(p.to_ts - p.from_ts) OVER (PARTITION BY p.tid, p.task_id) AS total_ns
    FROM piece AS p
  ),
  ranked AS (
    SELECT
      s.*,
      dense_rank() OVER (ORDER BY s.total_ns DESC, s.tid, s.task_id) AS place
    FROM summed AS s
  )
SELECT
  p.from_ts AS ts,
  p.to_ts - p.from_ts AS dur,
  'Writeback/Stalls/stalls of ' || coalesce(k.path, 'tid ' || p.tid) AS track,
  p.kind || CASE WHEN p.cause = 'unknown' THEN '' ELSE ': ' || p.cause END
    AS name,
  NULL AS value,
  NULL AS unit,
  p.place AS rank,
  p.kind AS arg_kind,
  p.cause AS arg_cause,
  p.bdi AS arg_bdi
FROM ranked AS p
LEFT JOIN wb_task_label AS k ON k.task_id = p.task_id;
