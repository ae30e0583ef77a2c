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
-- @column   arg_why TEXT in a sentence; of several waits the first
-- @column   arg_waits_count INTEGER waits that are too short to be seen apart
-- @column   arg_waited_ns INTEGER their time, without gaps
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
-- @cost     250
CREATE VIEW tl_stall_task AS
WITH
  pixel AS (
    SELECT (b.last_ts - b.first_ts) / v.drawn_steps_count AS ns
    FROM wb_bounds AS b
    CROSS JOIN wb_rule AS v
  ),
  part AS (
    SELECT
      p.wait_id, p.tid, p.from_ts, p.to_ts,
      lag(p.to_ts) OVER same AS before_ts,
      lag(p.to_ts - p.from_ts) OVER same AS before_ns,
      lag(p.wait_id) OVER same AS before_wait_id
    FROM wb_wait_piece AS p
    WINDOW same AS (PARTITION BY p.tid ORDER BY p.from_ts, p.to_ts)
  ),
  -- Pieces of a wait that touch are one, and so are waits alike that nobody
  -- could see apart; the thread's own track has each.
  piece AS (
    SELECT
      p.wait_id, p.tid, p.from_ts, p.to_ts,
      CASE
        WHEN p.before_ts = p.from_ts AND p.before_wait_id = p.wait_id THEN 0
        WHEN p.from_ts - p.before_ts <= x.ns
          AND p.to_ts - p.from_ts < x.ns
          AND p.before_ns < x.ns
          AND s.kind = o.kind
          AND s.cause = o.cause
          AND s.bdi IS o.bdi
          THEN 0
        ELSE 1
      END AS is_new
    FROM part AS p
    CROSS JOIN pixel AS x
    CROSS JOIN wb_stall AS s ON s.wait_id = p.wait_id
    LEFT JOIN wb_stall AS o ON o.wait_id = p.before_wait_id
  ),
  numbered AS (
    SELECT
      p.*,
      sum(p.is_new) OVER (
        PARTITION BY p.tid ORDER BY p.from_ts, p.to_ts ROWS UNBOUNDED PRECEDING
      ) AS stretch
    FROM piece AS p
  ),
  whole AS (
    SELECT
      min(n.wait_id) AS wait_id,
      min(n.from_ts) AS from_ts,
      max(n.to_ts) AS to_ts,
      sum(n.to_ts - n.from_ts) AS waited_ns,
      count(DISTINCT n.wait_id) AS waits_count
    FROM numbered AS n
    GROUP BY n.tid, n.stretch
  ),
  summed AS (
    SELECT
      w.wait_id, w.from_ts, w.to_ts, w.waited_ns, w.waits_count, s.tid,
      s.task_id,
      sum(w.waited_ns) OVER (PARTITION BY s.tid, s.task_id) AS total_ns
    FROM whole AS w
    CROSS JOIN wb_stall AS s ON s.wait_id = w.wait_id
  ),
  ranked AS (
    SELECT
      m.*,
      dense_rank() OVER (ORDER BY m.total_ns DESC, m.tid, m.task_id) AS place
    FROM summed AS m
  )
SELECT
  p.from_ts AS ts,
  p.to_ts - p.from_ts AS dur,
  'Writeback/Stalls/stalls of ' || coalesce(k.path, 'tid ' || p.tid) AS track,
  s.kind || CASE WHEN s.cause = 'unknown' THEN '' ELSE ': ' || s.cause END
    || CASE WHEN p.waits_count > 1 THEN ' x ' || p.waits_count ELSE '' END
    AS name,
  NULL AS value,
  NULL AS unit,
  p.place AS rank,
  y.why AS arg_why,
  p.waits_count AS arg_waits_count,
  p.waited_ns AS arg_waited_ns,
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
  y.domain AS arg_domain,
  y.pause_ns AS arg_pause_ns,
  y.paused_ns AS arg_paused_ns,
  y.period_ns AS arg_period_ns,
  y.think_ns AS arg_think_ns,
  y.dirtied_bytes AS arg_dirtied_bytes,
  y.dirty_ratelimit_bytes_per_s AS arg_dirty_ratelimit_bytes_per_s,
  y.task_ratelimit_bytes_per_s AS arg_task_ratelimit_bytes_per_s,
  y.dirty_bytes AS arg_dirty_bytes,
  y.setpoint_bytes AS arg_setpoint_bytes,
  y.limit_bytes AS arg_limit_bytes,
  y.wb_dirty_bytes AS arg_wb_dirty_bytes,
  y.wb_setpoint_bytes AS arg_wb_setpoint_bytes
FROM ranked AS p
CROSS JOIN wb_stall AS s ON s.wait_id = p.wait_id
CROSS JOIN wb_stall_why AS y ON y.wait_id = s.wait_id
LEFT JOIN wb_loss AS l ON l.wait_id = s.wait_id
LEFT JOIN wb_task_label AS k ON k.task_id = p.task_id;
