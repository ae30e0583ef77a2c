-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_stall
-- @summary  Waits of tasks without double counting, each with its cause.
-- @grain    wait that keeps time of its own, or whose end no event tells; order
--   wait_id
-- @needs    wb_wait, wb_wait_busy, wb_throttle_cause, wb_wait_request,
--   wb_stall_rule
-- @column   wait_id INTEGER of wb_wait
-- @column   seq INTEGER of the event, or of the sched_switch, that it is from
-- @column   ts INTEGER ns, trace clock, start
-- @column   dur INTEGER ns, its time without the waits inside it; NULL = no
--   event tells
-- @column   span_ns INTEGER from its start to its end, those included
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   kind TEXT as in wb_wait
-- @column   what TEXT event or call that it is from
-- @column   cause TEXT why the task waited here, or unknown; docs/stalls.md
-- @column   bdi TEXT backing device, or device, where the events tell
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root; throttle only
-- @column   basis TEXT how well its time is known; as in wb_wait
-- @column   cut TEXT as in wb_wait
-- @column   pos_ratio REAL as in wb_throttle_cause
-- @column   global_pos_ratio REAL as in wb_throttle_cause
-- @column   wb_pos_ratio REAL as in wb_throttle_cause
-- @column   global_share_ratio REAL as in wb_throttle_cause
-- @column   journal_ratio REAL share of dur in which the journal committed
-- @column   device_ratio REAL share of dur in which the device had requests
-- @column   kswapd_ratio REAL share of dur in which a kswapd was awake
-- @column   ref_seq INTEGER of the event that says why
-- @source   docs/stalls.md; mm/vmscan.c reclaim_throttle();
--   include/linux/mmzone.h enum vmscan_throttle_state
-- @materialize
CREATE VIEW wb_stall AS
WITH
  shared AS (
    SELECT
      w.*,
      CASE WHEN w.kind = 'throttle' THEN w.ref_seq END AS throttle_seq,
      CASE WHEN w.kind = 'block queue' THEN w.ref_seq END AS request_seq,
      b.own_ns,
      1.0 * b.journal_ns / b.own_ns AS journal_ratio,
      1.0 * b.device_ns / b.own_ns AS device_ratio,
      1.0 * b.kswapd_ns / b.own_ns AS kswapd_ratio
    FROM wb_wait AS w
    LEFT JOIN wb_wait_busy AS b ON b.wait_id = w.wait_id
    WHERE b.wait_id IS NOT NULL OR w.end_ts IS NULL
  )
SELECT
  s.wait_id,
  s.seq,
  s.ts,
  s.own_ns AS dur,
  s.end_ts - s.ts AS span_ns,
  s.tid,
  s.comm,
  s.task_id,
  s.kind,
  s.what,
  CASE
    -- The events of 2011 say nothing about the dirty pages.
    WHEN s.kind = 'throttle' THEN coalesce(c.cause, 'unknown')
    WHEN s.kind = 'memcg reclaim' THEN 'memcg limit'
    WHEN s.kind = 'reclaim throttle' THEN
      CASE s.reason
        WHEN 1 THEN 'writeback behind reclaim'
        WHEN 2 THEN 'too many reclaimers'
        WHEN 4 THEN 'reclaim without progress'
        WHEN 8 THEN 'writeback behind reclaim'
        ELSE 'unknown'
      END
    WHEN s.what = 'xfs_log_grant' THEN 'journal full'
    WHEN s.what = 'xfs_log_cil_wait' THEN 'journal commit'
    WHEN s.what = 'node_reclaim' THEN 'zone reclaim mode'
    WHEN s.kind = 'direct reclaim' THEN
      CASE
        WHEN s.kswapd_ratio >= r.most_ratio THEN 'kswapd behind'
        WHEN s.kswapd_ratio < r.most_ratio THEN 'kswapd asleep'
        ELSE 'unknown'
      END
    WHEN s.kind = 'block queue' THEN
      CASE
        WHEN q.issue_ts IS NULL THEN 'unknown'
        WHEN (q.end_ts - q.issue_ts) >= (q.end_ts - q.ts) * r.most_ratio
          THEN 'device latency'
        ELSE 'queued behind others'
      END
    WHEN s.own_ns IS NULL THEN 'unknown'
    WHEN s.kind <> 'folio wait' AND s.journal_ratio >= r.most_ratio
      THEN 'journal commit'
    WHEN s.device_ratio >= r.most_ratio THEN 'device latency'
    ELSE 'unknown'
  END AS cause,
  s.device AS bdi,
  c.cgroup_ino,
  s.basis,
  s.cut,
  c.pos_ratio,
  c.global_pos_ratio,
  c.wb_pos_ratio,
  c.global_share_ratio,
  s.journal_ratio,
  s.device_ratio,
  s.kswapd_ratio,
  s.ref_seq
FROM shared AS s
CROSS JOIN wb_stall_rule AS r
LEFT JOIN wb_throttle_cause AS c ON c.seq = s.throttle_seq
LEFT JOIN wb_wait_request AS q ON q.seq = s.request_seq;
