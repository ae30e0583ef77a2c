-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_stall
-- @title    Waits on the threads
-- @order    22
-- @track    Writeback stalls: waits of this thread from begin to end, one in
--   the other, named by their kind and cause
-- @summary  Every wait on the track of its thread, with its cause and with what
--   the kernel knew when it decided.
-- @grain    stall; order ts
-- @needs    wb_stall, wb_throttle_event, wb_release
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
-- @optional sched:sched_switch, writeback:writeback_start,
--   writeback:writeback_written, writeback:bdi_dirty_ratelimit
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
  'kind=' || s.kind
    || '|cause=' || s.cause
    || '|what="' || coalesce(replace(replace(s.what, '\', '\\'), '|', '\|'), '')
    || '"|bdi="' || coalesce(replace(replace(s.bdi, '\', '\\'), '|', '\|'), '')
    || '"|cgroup_ino=' || coalesce(s.cgroup_ino, '')
    || '|comm="'
    || coalesce(replace(replace(s.comm, '\', '\\'), '|', '\|'), '')
    || '"|own_ns=' || coalesce(s.dur, '')
    || '|basis=' || coalesce(s.basis, '')
    || '|cut=' || coalesce(s.cut, '')
    || '|pos_ratio=' || coalesce(round(s.pos_ratio, 6), '')
    || '|global_pos_ratio=' || coalesce(round(s.global_pos_ratio, 6), '')
    || '|wb_pos_ratio=' || coalesce(round(s.wb_pos_ratio, 6), '')
    || '|global_share_ratio=' || coalesce(round(s.global_share_ratio, 6), '')
    || '|journal_ratio=' || coalesce(round(s.journal_ratio, 6), '')
    || '|device_ratio=' || coalesce(round(s.device_ratio, 6), '')
    || '|kswapd_ratio=' || coalesce(round(s.kswapd_ratio, 6), '')
    || coalesce(
      '|domain=' || coalesce(t.domain, '')
        || '|pause_ns=' || t.pause_ns
        || '|paused_ns=' || coalesce(t.paused_ns, '')
        || '|period_ns=' || coalesce(t.period_ns, '')
        || '|think_ns=' || coalesce(t.think_ns, '')
        || '|dirtied_bytes=' || coalesce(t.dirtied_bytes, '')
        || '|dirty_ratelimit_bytes_per_s='
        || coalesce(t.dirty_ratelimit_bytes_per_s, '')
        || '|task_ratelimit_bytes_per_s='
        || coalesce(t.task_ratelimit_bytes_per_s, '')
        || '|dirty_bytes=' || coalesce(t.dirty_bytes, '')
        || '|setpoint_bytes=' || coalesce(t.setpoint_bytes, '')
        || '|limit_bytes=' || coalesce(t.limit_bytes, '')
        || '|wb_dirty_bytes=' || coalesce(t.wb_dirty_bytes, '')
        || '|wb_setpoint_bytes=' || coalesce(t.wb_setpoint_bytes, ''),
      ''
    ) AS args,
  NULL AS rank,
  s.tid AS tid,
  a.flows AS flows
FROM wb_stall AS s
LEFT JOIN wb_throttle_event AS t ON s.kind = 'throttle' AND t.seq = s.ref_seq
LEFT JOIN arrow AS a ON a.wait_id = s.wait_id;
