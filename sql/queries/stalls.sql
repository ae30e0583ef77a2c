-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    stalls
-- @title    Every wait, and why
-- @summary  Waits of tasks one by one, without double counting, and the cause
--   of each as far as the events tell it.
-- @read     dur is the wait's own time: a wait inside another one takes its
--   time away from the outer one, so the rows of a task never add up to more
--   than has passed; span is the outer time. cause says why the task waited
--   here; unknown means that the events do not show it. docs/stalls.md has the
--   rules. --explain shows what it was decided on.
-- @explain  stalls_evidence
-- @filters  range, bdi, tid, task, cgroup
-- @grain    stall; order ts
-- @keys     ts, tid, comm, kind
-- @first    cause, dur, bdi, cgroup_ino
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
-- @optional writeback:bdi_dirty_ratelimit, writeback:global_dirty_state,
--   vmscan:mm_vmscan_kswapd_wake, vmscan:mm_vmscan_kswapd_sleep,
--   block:block_rq_complete, jbd2:jbd2_start_commit, jbd2:jbd2_end_commit,
--   sched:sched_switch, sched:sched_process_exit
-- @column   ts INTEGER ns, start of the wait
-- @column   dur INTEGER ns, its time without the waits inside it; NULL = no
--   event tells its end
-- @column   comm TEXT its name
-- @column   cause TEXT why the task waited here, or unknown
-- @column   span_ns INTEGER from its start to its end, waits inside it included
-- @column   basis TEXT how dur was measured: sched, events, reported, measured
--   (by the kernel), paused or intended
-- @column   server_ratio REAL share of dur in which the server of NFS or FUSE
--   had requests
-- @column   finding TEXT finding that tells of it, as in lost_time; NULL = none
-- @column   holder_bdi TEXT throttle: the wb, other than its own, whose dirty
--   pages filled most of the pool that it waited for; NULL = none is known
-- @column   holder_cgroup_ino INTEGER cgroup of that wb
-- @column   holder_share_ratio REAL what that wb held of the pool
-- @column   stall_id INTEGER number of the wait, for explain --stall
-- @metric   dur lower: length of one wait
-- @cost     150
SELECT
  s.ts, s.dur, s.tid, s.comm, s.kind, s.cause, s.bdi, s.cgroup_ino, s.span_ns,
  s.basis, s.cut, s.what, s.pos_ratio, s.global_pos_ratio, s.wb_pos_ratio,
  s.global_share_ratio, s.journal_ratio, s.device_ratio, s.server_ratio,
  s.kswapd_ratio, l.finding, l.holder_bdi, l.holder_cgroup_ino,
  l.holder_share_ratio,
  s.wait_id AS stall_id
FROM wb_stall AS s
LEFT JOIN wb_loss AS l ON l.wait_id = s.wait_id
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(s.ts, b)
  AND asked!(s, p)
ORDER BY s.ts, s.wait_id;
