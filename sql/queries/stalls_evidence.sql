-- SPDX-License-Identifier: Apache-2.0
-- @query    stalls_evidence
-- @title    What the cause of each stall was decided on
-- @summary  For each row of stalls, its event and what was recorded around it.
-- @read     Rows with the same stall_ts and tid belong to one stall. Fields of
--   events are as the kernel prints them: pages, KiB/s and ms. before tells how
--   long before the stall it was so. `query stalls --explain` prints this below
--   the stalls. Of more than 10000 stalls only the longest 10000 are explained:
--   choose with --tid, --bdi, --from and --to.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    fact about a stall; order stall_ts
-- @needs    wb_stall_evidence
-- @events   writeback:balance_dirty_pages
--   |writeback:writeback_balance_dirty_pages_waiting
--   |vmscan:mm_vmscan_direct_reclaim_begin
--   |vmscan:mm_vmscan_memcg_reclaim_begin
--   |vmscan:mm_vmscan_node_reclaim_begin|vmscan:mm_vmscan_throttled
--   |writeback:writeback_congestion_wait|writeback:writeback_wait_iff_congested
--   |writeback:folio_wait_writeback|writeback:wait_on_page_writeback
--   |ext4:ext4_sync_file_enter|jbd2:jbd2_lock_buffer_stall
--   |xfs:xfs_log_grant_sleep|xfs:xfs_log_cil_wait|block:block_rq_issue
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
-- @column   stall_ts INTEGER ns, start of the stall
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   kind TEXT as in stalls
-- @column   cause TEXT as in stalls
-- @column   evidence TEXT event or fact
-- @column   before_ns INTEGER from it to the start of the stall; negative: it
--   fired later, such as an event that reports a sleep; NULL = of the whole
--   stall
-- @column   detail TEXT what it says
SELECT
  e.stall_ts,
  e.tid,
  e.comm,
  e.kind,
  e.cause,
  e.evidence,
  e.stall_ts - e.evidence_ts AS before_ns,
  e.detail
FROM wb_stall_evidence AS e
ORDER BY e.stall_ts, e.wait_id, e.place;
