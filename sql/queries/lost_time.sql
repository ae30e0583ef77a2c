-- SPDX-License-Identifier: Apache-2.0
-- What is wrong.

-- @query    lost_time
-- @title    Time that tasks lost, by finding
-- @order    12
-- @summary  The waits of each task under the finding that tells of them.
-- @read     Each wait is under one finding only, so the rows add up. finding
--   `-` is a wait that no rule counts (finding unexplained). explain calls
--   many_seconds sync_waits where little was dirty. Kernel threads are left
--   out, but for flushers that wait for a journal.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    finding, task under a name, kind, cause, bdi; order total_ns
--   descending
-- @keys     finding, tid, comm, kind, cause, bdi
-- @first    total_ns, stalls_count
-- @events   writeback:balance_dirty_pages
--   |vmscan:mm_vmscan_direct_reclaim_begin
--   |vmscan:mm_vmscan_memcg_reclaim_begin|vmscan:mm_vmscan_throttled
--   |writeback:folio_wait_writeback|ext4:ext4_sync_file_enter
--   |jbd2:jbd2_lock_buffer_stall|xfs:xfs_log_grant_sleep|block:block_rq_issue
--   |nfs:nfs_fsync_enter|fuse:fuse_request_send|syscalls:sys_enter_fsync
--   |syscalls:sys_enter_sync|sched:sched_switch
-- @optional writeback:global_dirty_state, writeback:bdi_dirty_ratelimit,
--   block:block_rq_issue, block:block_rq_complete, sched:sched_switch
-- @column   finding TEXT id of the finding; NULL = none tells of it
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   kind TEXT of wait, as in stalls
-- @column   cause TEXT as in stalls
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; throttle only
-- @column   stalls_count INTEGER waits
-- @column   total_ns INTEGER sum of their own times
-- @column   max_ns INTEGER longest
-- @column   device_ratio REAL share of that time in which the device had
--   requests; NULL = not recorded
-- @column   own_share_ratio REAL throttle: of the pool, what the task's own wb
--   held, weighted by time
-- @column   holder_share_ratio REAL throttle: what the other wb held that held
--   most; NULL = none is known
-- @column   call_max_ns INTEGER throttle: longest that one call of
--   balance_dirty_pages() was held up in all, by one or more waits, of the
--   calls that were held up longest under this finding
-- @column   call_part_max_ns INTEGER throttle: longest of these under this
--   finding alone
-- @column   whole_call_max_ns INTEGER throttle: the same of all calls with such
--   a wait, those that were held up longer under another finding too
-- @column   life_ns INTEGER from the first to the last wait, throttle event or
--   switch of the task
-- @column   asleep_ratio REAL share of that in which it was in known waits
-- @metric   total_ns lower: time tasks were blocked for this reason
WITH
  chosen AS (
    SELECT l.*
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(l.ts, b)
      AND asked!(l, p)
  ),
  -- How long each call of balance_dirty_pages() held its task up. It may go on
  -- for another cause, and under another finding: it is of the one that held it
  -- longest. Windows take three times as long.
  held AS (
    SELECT l.call_seq, l.finding, sum(l.dur) AS held_ns
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.call_seq IS NOT NULL AND in_time!(l.ts, b)
    GROUP BY l.call_seq, l.finding
  ),
  longest AS (
    SELECT
      h.call_seq,
      sum(h.held_ns) AS call_ns,
      max(h.held_ns) AS most_ns
    FROM held AS h
    GROUP BY h.call_seq
  ),
  call AS (
    SELECT
      h.call_seq, h.finding, c.call_ns,
      CASE WHEN h.held_ns = c.most_ns THEN c.call_ns END AS own_call_ns,
      CASE WHEN h.held_ns = c.most_ns THEN h.held_ns END AS part_ns
    FROM held AS h
    JOIN longest AS c ON c.call_seq = h.call_seq
  )
SELECT
  l.finding, l.tid, l.comm, l.kind, l.cause, l.bdi, l.cgroup_ino,
  count(*) AS stalls_count,
  sum(l.dur) AS total_ns,
  max(l.dur) AS max_ns,
  mean_over!(l.device_ratio, l.dur)
    AS device_ratio,
  mean_over!(l.own_share_ratio, l.dur)
    AS own_share_ratio,
  mean_over!(l.holder_share_ratio, l.dur)
    AS holder_share_ratio,
  max(c.own_call_ns) AS call_max_ns,
  max(c.part_ns) AS call_part_max_ns,
  max(
    CASE
      WHEN l.call_seq IS NOT NULL THEN c.call_ns
      -- The events of 2011 tell no calls.
      WHEN l.kind = 'throttle' THEN l.dur
    END
  ) AS whole_call_max_ns,
  max(l.life_ns) AS life_ns,
  max(l.asleep_ratio) AS asleep_ratio
FROM chosen AS l
LEFT JOIN call AS c
  ON c.call_seq = l.call_seq AND c.finding IS l.finding
GROUP BY
  l.finding, l.tid, l.comm, l.task_id, l.kind, l.cause, l.bdi, l.cgroup_ino
ORDER BY
  total_ns DESC,
  l.finding, l.tid, l.task_id, l.kind, l.cause, l.bdi,
  l.cgroup_ino;
