-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    stalls_by_task
-- @title    Where tasks waited, and why
-- @order    15
-- @summary  Waits of each task by kind and cause: how many, how long, and the
--   longest.
-- @read     The first row is what cost a task most. Times are without double
--   counting: a wait inside another one counts for the inner one only. `query
--   stalls` lists the waits one by one and, with --explain, why.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    task under a name, kind, cause; order total_ns descending
-- @first    total_ns, stalls_count, max_ns
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
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   kind TEXT as in stalls
-- @column   cause TEXT as in stalls
-- @column   stalls_count INTEGER waits
-- @column   total_ns INTEGER sum of their own times
-- @column   max_ns INTEGER longest own time
-- @column   p99_ns INTEGER of own times, nearest rank
-- @column   unmeasured_count INTEGER of them, waits whose end no event tells
-- @metric   total_ns lower: how long a program stood still for this reason, all
--   its waits together
-- @metric   max_ns lower: the longest single wait for this reason
-- @metric   p99_ns lower: 99 of 100 waits for this reason were at most so long
-- @cost     150
WITH
  chosen AS (
    SELECT s.task_id, s.tid, s.comm, s.kind, s.cause, s.dur
    FROM wb_stall AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(s.ts, b)
      AND (p.bdi IS NULL OR s.bdi = p.bdi)
      AND (p.tid IS NULL OR s.tid = p.tid)
      AND (p.comm_glob IS NULL OR s.comm GLOB p.comm_glob)
      AND (p.cgroup_ino IS NULL OR s.cgroup_ino = p.cgroup_ino)
  ),
  ranked AS (
    SELECT
      c.*,
      row_number() OVER (
        PARTITION BY c.tid, c.task_id, c.kind, c.cause, c.dur IS NULL
        ORDER BY c.dur
      ) AS place,
      count(c.dur) OVER (PARTITION BY c.tid, c.task_id, c.kind, c.cause)
        AS measured_count
    FROM chosen AS c
  )
SELECT
  r.tid, r.comm, r.kind, r.cause,
  count(*) AS stalls_count,
  sum(r.dur) AS total_ns,
  max(r.dur) AS max_ns,
  max(CASE WHEN r.place = rank_of!(99, r.measured_count) THEN r.dur END)
    AS p99_ns,
  count(*) - count(r.dur) AS unmeasured_count
FROM ranked AS r
GROUP BY r.tid, r.comm, r.task_id, r.kind, r.cause
ORDER BY
  total_ns IS NULL,
  total_ns DESC,
  r.tid, r.task_id, r.kind,
  r.cause;
