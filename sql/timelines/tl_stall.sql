-- SPDX-License-Identifier: Apache-2.0

-- @timeline tl_stall
-- @title    Waits on the threads
-- @order    22
-- @track    Writeback stalls: system calls of this thread that write or sync,
--   calls of balance_dirty_pages() in them, and its waits from begin to end,
--   one in the other; a mark at the end of a wait leads to what ended it
-- @summary  Every wait on the track of its thread, with its cause and with what
--   the kernel knew when it decided, in the calls that held the thread.
-- @grain    stall, call or end of a stall; order ts
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
-- @optional sched:sched_switch, writeback:writeback_start,
--   writeback:writeback_written, writeback:bdi_dirty_ratelimit
-- @column   arg_why TEXT in a sentence
-- @column   arg_kind TEXT as in stalls; else call or system call
-- @column   arg_cause TEXT as in stalls
-- @column   arg_what TEXT event, system call or journal step
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   arg_comm TEXT its name then
-- @column   arg_own_ns INTEGER its time without waits within it
-- @column   arg_basis TEXT how it was measured, as in stalls
-- @column   arg_cut TEXT start or end: under way when the trace began or ended;
--   NULL = neither
-- @column   arg_slept_ns INTEGER of a call: all its pauses
-- @column   arg_pauses_count INTEGER of a call: how many
-- @column   arg_written_bytes INTEGER of a write system call: its result
-- @column   arg_fd INTEGER of a write system call: its descriptor
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
-- @cost     420
CREATE VIEW tl_stall AS
WITH
  -- What the UI shows of a duration in a name.
  held AS (
    SELECT
      c.*,
      CASE
        WHEN c.call_ns >= 1e9 THEN printf('%.2f s', c.call_ns / 1e9)
        ELSE printf('%d ms', round(c.call_ns / 1e6))
      END AS length
    FROM _throttle_call AS c
  ),
  called AS (
    SELECT
      w.ts, w.end_ts, w.tid,
      'write(' || coalesce(w.fd || ', ', '') || w.written_bytes || ')' AS name,
      w.fd, w.written_bytes
    FROM wb_write_call AS w
    UNION ALL
    SELECT c.ts, c.end_ts, c.tid, c.call || '()', NULL, NULL
    FROM wb_sync_call AS c
  ),
  -- depth: of slices that are as long, the outer one is first.
  slice AS (
    -- Of system calls those that held the thread, and that are no wait.
    SELECT
      0 AS depth,
      c.ts,
      c.end_ts - c.ts AS dur,
      c.tid, c.name,
      NULL AS flow,
      NULL AS why,
      'system call' AS kind,
      NULL AS cause,
      c.name AS what,
      NULL AS bdi,
      NULL AS slept_ns,
      NULL AS pauses_count,
      c.written_bytes, c.fd,
      NULL AS wait_id
    FROM called AS c
    CROSS JOIN wb_rule AS r
    WHERE c.end_ts - c.ts >= r.call_least_ns
      AND NOT EXISTS (
        SELECT 1
        FROM wb_stall AS s
        WHERE s.tid = c.tid
          AND s.ts = c.ts
          AND s.kind IN ('write', 'fsync', 'sync')
      )
    UNION ALL
    SELECT
      1, c.ts,
      c.end_ts - c.ts,
      c.tid,
      'balance_dirty_pages ' || c.length || ': ' || c.cause,
      NULL,
      'held for ' || c.length || ' by ' || c.pauses_count
        || CASE c.pauses_count WHEN 1 THEN ' pause, ' ELSE ' pauses, ' END
        || 'mostly: ' || c.cause,
      'call',
      c.cause,
      'balance_dirty_pages',
      c.bdi, c.slept_ns, c.pauses_count, NULL, NULL, NULL
    FROM held AS c
    UNION ALL
    SELECT
      2, s.ts, s.span_ns, s.tid,
      s.kind || CASE WHEN s.cause = 'unknown' THEN '' ELSE ': ' || s.cause END,
      NULL, y.why, s.kind, s.cause, s.what, s.bdi, NULL, NULL, NULL, NULL,
      s.wait_id
    FROM wb_stall AS s
    JOIN wb_stall_why AS y ON y.wait_id = s.wait_id
    UNION ALL
    SELECT
      3, r.wait_end_ts, 0, s.tid,
      'ended by ' || r.source,
      r.flow,
      'ended by ' || CASE r.source
        WHEN 'commit' THEN 'a commit of the journal'
        WHEN 'work' THEN 'work of the flusher'
        ELSE 'a request of the device'
      END,
      'end',
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM wb_release AS r
    CROSS JOIN wb_rule AS v
    JOIN wb_stall AS s
      ON s.wait_id = r.wait_id AND s.span_ns >= v.call_least_ns
  )
SELECT
  c.ts, c.dur,
  'Writeback stalls' AS track,
  c.name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  c.tid AS tid,
  CAST(c.flow AS TEXT) AS flows,
  c.why AS arg_why,
  c.kind AS arg_kind,
  c.cause AS arg_cause,
  c.what AS arg_what,
  c.bdi AS arg_bdi,
  s.cgroup_ino AS arg_cgroup_ino,
  s.comm AS arg_comm,
  s.dur AS arg_own_ns,
  s.basis AS arg_basis,
  s.cut AS arg_cut,
  c.slept_ns AS arg_slept_ns,
  c.pauses_count AS arg_pauses_count,
  c.written_bytes AS arg_written_bytes,
  c.fd AS arg_fd,
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
FROM slice AS c
LEFT JOIN wb_stall AS s ON s.wait_id = c.wait_id
LEFT JOIN wb_stall_why AS y ON y.wait_id = c.wait_id
LEFT JOIN wb_loss AS l ON l.wait_id = c.wait_id
ORDER BY c.ts, c.dur DESC, c.depth;

-- @view     _throttle_call
-- @summary  Calls of balance_dirty_pages() that slept: how long each held its
--   task up, all its pauses together.
-- @grain    call; order tid, ts
-- @events   writeback:balance_dirty_pages
-- @column   seq INTEGER of its last event
-- @column   ts INTEGER ns, start
-- @column   end_ts INTEGER ns, end
-- @column   tid INTEGER thread
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cause TEXT of its longest sleep, as in wb_throttle_cause
-- @column   worst_seq INTEGER of the event before its longest sleep
-- @column   call_ns INTEGER as in wb_throttle
-- @column   slept_ns INTEGER all sleeps
-- @column   pauses_count INTEGER sleeps
-- @source   mm/page-writeback.c balance_dirty_pages()
-- @materialize
-- @cost     160
CREATE VIEW _throttle_call AS
WITH
  -- Most calls have one event.
  single AS (
    SELECT
      c.seq,
      min(c.ts, c.sleep_ts) AS first_ts,
      c.paused_ns,
      c.sleep_ts + c.slept_ns AS end_ts,
      c.tid, c.task_id, c.bdi, c.call_ns, c.slept_ns,
      1 AS pauses_count,
      c.seq AS worst_seq
    FROM wb_throttle AS c
    WHERE c.is_step = 1
      AND c.is_first = 1
      AND c.is_last = 1
      AND c.slept_ns > 0
  ),
  numbered AS (
    SELECT
      c.seq, c.ts, c.tid, c.task_id, c.bdi, c.is_first, c.paused_ns, c.sleep_ts,
      c.slept_ns, c.call_ns,
      sum(c.is_first) OVER (
        PARTITION BY c.tid ORDER BY c.seq ROWS UNBOUNDED PRECEDING
      ) AS call
    FROM wb_throttle AS c
    WHERE c.is_step = 1 AND (c.is_first = 0 OR c.is_last = 0)
  ),
  ranked AS (
    SELECT
      n.*,
      row_number() OVER (
        PARTITION BY n.tid, n.call ORDER BY n.slept_ns DESC, n.seq
      ) AS place
    FROM numbered AS n
  ),
  several AS (
    SELECT
      max(r.seq) AS seq,
      min(min(r.ts, r.sleep_ts)) AS first_ts,
      max(CASE WHEN r.is_first = 1 THEN r.paused_ns END) AS paused_ns,
      max(CASE WHEN r.slept_ns > 0 THEN r.sleep_ts + r.slept_ns END) AS end_ts,
      r.tid,
      max(r.task_id) AS task_id,
      max(r.bdi) AS bdi,
      max(r.call_ns) AS call_ns,
      sum(r.slept_ns) AS slept_ns,
      sum(CASE WHEN r.slept_ns > 0 THEN 1 ELSE 0 END) AS pauses_count,
      max(CASE WHEN r.place = 1 THEN r.seq END) AS worst_seq
    FROM ranked AS r
    GROUP BY r.tid, r.call
    HAVING sum(r.slept_ns) > 0
  ),
  call AS (
    SELECT s.* FROM single AS s
    UNION ALL
    SELECT s.* FROM several AS s
  ),
  placed AS (
    SELECT
      c.*,
      -- What it took before its first event is in whole jiffies, begun ones
      -- too: it is at least one less.
      c.first_ts - max(coalesce(c.paused_ns - h.jiffy_ns, 0), 0) AS begin_ts,
      lag(c.end_ts) OVER (PARTITION BY c.tid ORDER BY c.seq) AS before_ts
    FROM call AS c
    CROSS JOIN wb_hz AS h
  )
SELECT
  p.seq,
  -- Not call_ns before its end, which is in jiffies, too: that may be before
  -- the system call that it is in.
  max(p.begin_ts, coalesce(p.before_ts, p.begin_ts)) AS ts,
  p.end_ts, p.tid, p.task_id, p.bdi,
  coalesce(k.cause, 'unknown') AS cause,
  p.worst_seq,
  coalesce(p.call_ns, p.end_ts - p.first_ts) AS call_ns,
  p.slept_ns, p.pauses_count
FROM placed AS p
LEFT JOIN wb_throttle_cause AS k ON k.seq = p.worst_seq;
