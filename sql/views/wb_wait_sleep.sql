-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_wait_sleep
-- @summary  Uninterruptible sleeps that sched_switch measured, with the events
--   of the same task around them that tell what it slept for.
-- @grain    sleep that an event explains; order seq
-- @needs    wb_blocked, wb_wait_request, wb_wait_pair, wb_stall_rule,
--   raw_folio_wait_writeback, raw_xfs_log_cil_wait, raw_mm_vmscan_throttled,
--   raw_writeback_congestion_wait, raw_writeback_wait_iff_congested,
--   raw_jbd2_lock_buffer_stall
-- @optional sched:sched_switch
-- @column   seq INTEGER of the sched_switch that took the task off its CPU
-- @column   ts INTEGER ns, when the task left the CPU
-- @column   end_ts INTEGER ns, when it ran again
-- @column   tid INTEGER thread
-- @column   before_seq INTEGER of the event that fired before a sleep,
--   folio_wait_writeback or xfs_log_cil_wait, and that this one followed at
--   once
-- @column   after_seq INTEGER of the event that fired after this sleep and
--   reports it
-- @column   request_seq INTEGER of wb_wait_request: the last request for which
--   somebody waits that the task had submitted
-- @column   call_seq INTEGER of wb_wait_pair: the system call it slept in
-- @source   mm/filemap.c folio_wait_bit_common(); mm/vmscan.c
--   reclaim_throttle(); fs/jbd2/transaction.c do_get_write_access()
-- @materialize
CREATE VIEW wb_wait_sleep AS
WITH
  steps AS (
    SELECT
      s.tid,
      s.seq,
      s.ts,
      'sleep' AS step,
      s.end_ts,
      s.ran_ts
    FROM wb_blocked AS s
    UNION ALL
    SELECT f.tid, f.seq, f.ts, 'before', NULL, NULL
    FROM raw_folio_wait_writeback AS f
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'before', NULL, NULL
    FROM raw_xfs_log_cil_wait AS x
    UNION ALL
    SELECT t.tid, t.seq, t.ts, 'after', NULL, NULL
    FROM raw_mm_vmscan_throttled AS t
    UNION ALL
    SELECT w.tid, w.seq, w.ts, 'after', NULL, NULL
    FROM raw_writeback_congestion_wait AS w
    UNION ALL
    SELECT w.tid, w.seq, w.ts, 'after', NULL, NULL
    FROM raw_writeback_wait_iff_congested AS w
    UNION ALL
    SELECT j.tid, j.seq, j.ts, 'after', NULL, NULL
    FROM raw_jbd2_lock_buffer_stall AS j
    UNION ALL
    SELECT r.tid, r.seq, r.ts, 'request', NULL, NULL
    FROM wb_wait_request AS r
    WHERE r.is_sync = 1
    UNION ALL
    SELECT p.tid, p.seq, p.ts, 'call', p.end_ts, NULL
    FROM wb_wait_pair AS p
    WHERE p.what IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')
      AND p.end_ts IS NOT NULL
      AND (p.cut IS NULL OR p.cut <> 'lost')
  ),
  around AS (
    SELECT
      s.*,
      max(CASE WHEN s.step = 'before' THEN s.seq END) OVER task AS before_seq,
      max(CASE WHEN s.step = 'before' THEN s.ts END) OVER task AS before_ts,
      max(CASE WHEN s.step = 'request' THEN s.seq END) OVER task
        AS request_seq,
      max(CASE WHEN s.step = 'call' THEN s.seq END) OVER task AS call_seq,
      max(CASE WHEN s.step = 'call' THEN s.end_ts END) OVER task
        AS call_end_ts,
      max(CASE WHEN s.step = 'sleep' THEN s.seq END) OVER earlier
        AS last_sleep_seq,
      max(CASE WHEN s.step = 'sleep' THEN s.end_ts END) OVER earlier
        AS last_sleep_end_ts
    FROM steps AS s
    WINDOW
      task AS (PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING),
      earlier AS (
        PARTITION BY s.tid ORDER BY s.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  -- The sleep that an event reports is the last one before it.
  reported AS (
    SELECT a.last_sleep_seq AS sleep_seq, min(a.seq) AS after_seq
    FROM around AS a
    CROSS JOIN wb_stall_rule AS r
    WHERE a.step = 'after'
      AND a.ts - a.last_sleep_end_ts <= r.run_slack_ns
    GROUP BY a.last_sleep_seq
  ),
  told AS (
    SELECT
      a.seq,
      a.ts,
      a.end_ts,
      a.tid,
      -- The task runs on from the event to the sleep, but for preemption.
      CASE
        WHEN a.before_seq > coalesce(a.last_sleep_seq, 0)
          AND a.ts
            - CASE
              WHEN a.ran_ts > a.before_ts THEN a.ran_ts
              ELSE a.before_ts
            END
            <= r.run_slack_ns
          THEN a.before_seq
      END AS before_seq,
      w.after_seq,
      a.request_seq,
      CASE WHEN a.call_end_ts > a.ts THEN a.call_seq END AS call_seq
    FROM around AS a
    CROSS JOIN wb_stall_rule AS r
    LEFT JOIN reported AS w ON w.sleep_seq = a.seq
    WHERE a.step = 'sleep'
  )
SELECT
  t.seq,
  t.ts,
  t.end_ts,
  t.tid,
  t.before_seq,
  t.after_seq,
  t.request_seq,
  t.call_seq
FROM told AS t
WHERE t.before_seq IS NOT NULL
  OR t.after_seq IS NOT NULL
  OR t.request_seq IS NOT NULL
  OR t.call_seq IS NOT NULL;
