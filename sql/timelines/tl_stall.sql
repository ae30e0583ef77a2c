-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_stall
-- @title    Waits on the threads
-- @order    22
-- @track    Writeback stalls: waits of this thread from begin to end, one in
--   the other, named by their kind and cause
-- @summary  Every wait on the track of its thread, with its cause and with what
--   the kernel knew when it decided.
-- @grain    stall; order ts
-- @needs    wb_stall, wb_throttle, wb_release, wb_loss
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
-- @optional sched:sched_switch, writeback:writeback_start,
--   writeback:writeback_written, writeback:bdi_dirty_ratelimit
-- @column   arg_kind TEXT as in stalls
-- @column   arg_cause TEXT as in stalls
-- @column   arg_what TEXT event, system call or journal step
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   arg_comm TEXT its name then
-- @column   arg_own_ns INTEGER its time without waits within it
-- @column   arg_basis TEXT how it was measured, as in stalls
-- @column   arg_cut TEXT start or end: under way when the trace began or ended;
--   NULL = neither
-- @column   arg_pos_ratio REAL as in stalls
-- @column   arg_global_pos_ratio REAL as in stalls
-- @column   arg_wb_pos_ratio REAL as in stalls
-- @column   arg_global_share_ratio REAL as in stalls
-- @column   arg_journal_ratio REAL as in stalls
-- @column   arg_device_ratio REAL as in stalls
-- @column   arg_server_ratio REAL as in stalls
-- @column   arg_kswapd_ratio REAL as in stalls
-- @column   arg_finding TEXT rule of sql/findings that tells of it
-- @column   arg_holder_bdi TEXT of a throttle: the wb, other than its own,
--   whose dirty pages filled most of the pool
-- @column   arg_holder_cgroup_ino INTEGER cgroup of that wb
-- @column   arg_holder_share_ratio REAL what that wb held of the pool
-- @column   arg_domain TEXT of a throttle: as in wb_throttle
-- @column   arg_pause_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_paused_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_period_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_think_ns INTEGER of a throttle: as in wb_throttle
-- @column   arg_dirtied_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_dirty_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   arg_task_ratelimit_bytes_per_s INTEGER of a throttle: as in
--   wb_throttle
-- @column   arg_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_setpoint_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_limit_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_wb_dirty_bytes INTEGER of a throttle: as in wb_throttle
-- @column   arg_wb_setpoint_bytes INTEGER of a throttle: as in wb_throttle
CREATE VIEW tl_stall AS
WITH
  listed AS (
    SELECT
      r.wait_id,
      group_concat(r.flow, ' ') OVER (
        PARTITION BY r.wait_id ORDER BY r.flow ROWS UNBOUNDED PRECEDING
      ) AS flows,
      row_number() OVER (PARTITION BY r.wait_id ORDER BY r.flow DESC) AS place
    FROM wb_release AS r
  ),
  arrow AS (SELECT l.wait_id, l.flows FROM listed AS l WHERE l.place = 1)
SELECT
  s.ts,
  s.span_ns AS dur,
  'Writeback stalls' AS track,
  s.kind || CASE WHEN s.cause = 'unknown' THEN '' ELSE ': ' || s.cause END
    AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  s.tid AS tid,
  a.flows AS flows,
  s.kind AS arg_kind,
  s.cause AS arg_cause,
  s.what AS arg_what,
  s.bdi AS arg_bdi,
  s.cgroup_ino AS arg_cgroup_ino,
  s.comm AS arg_comm,
  s.dur AS arg_own_ns,
  s.basis AS arg_basis,
  s.cut AS arg_cut,
  round(s.pos_ratio, 6) AS arg_pos_ratio,
  round(s.global_pos_ratio, 6) AS arg_global_pos_ratio,
  round(s.wb_pos_ratio, 6) AS arg_wb_pos_ratio,
  round(s.global_share_ratio, 6) AS arg_global_share_ratio,
  round(s.journal_ratio, 6) AS arg_journal_ratio,
  round(s.device_ratio, 6) AS arg_device_ratio,
  round(s.server_ratio, 6) AS arg_server_ratio,
  round(s.kswapd_ratio, 6) AS arg_kswapd_ratio,
  l.finding AS arg_finding,
  l.holder_bdi AS arg_holder_bdi,
  l.holder_cgroup_ino AS arg_holder_cgroup_ino,
  round(l.holder_share_ratio, 6) AS arg_holder_share_ratio,
  t.domain AS arg_domain,
  t.pause_ns AS arg_pause_ns,
  t.paused_ns AS arg_paused_ns,
  t.period_ns AS arg_period_ns,
  t.think_ns AS arg_think_ns,
  t.dirtied_bytes AS arg_dirtied_bytes,
  t.dirty_ratelimit_bytes_per_s AS arg_dirty_ratelimit_bytes_per_s,
  t.task_ratelimit_bytes_per_s AS arg_task_ratelimit_bytes_per_s,
  t.dirty_bytes AS arg_dirty_bytes,
  t.setpoint_bytes AS arg_setpoint_bytes,
  t.limit_bytes AS arg_limit_bytes,
  t.wb_dirty_bytes AS arg_wb_dirty_bytes,
  t.wb_setpoint_bytes AS arg_wb_setpoint_bytes
FROM wb_stall AS s
LEFT JOIN wb_throttle AS t ON s.kind = 'throttle' AND t.seq = s.ref_seq
LEFT JOIN wb_loss AS l ON l.wait_id = s.wait_id
LEFT JOIN arrow AS a ON a.wait_id = s.wait_id;
