-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    copy_and_sync
-- @title    Copies, the syncs after them, and the dirty level
-- @order    46
-- @summary  How long each task wrote and synced, and how much was dirty then.
-- @read     A copy is all write calls of a task, from the first to the end of
--   the last; a sync is all its calls of sync, fsync or the like. in_calls is
--   the time inside the calls. A copy that ends soon with much dirty leaves its
--   work to the sync after it: compare the sum of both. The dirty level is that
--   of the whole machine.
-- @filters  range, tid, task
-- @grain    task under a name, and phase; order ts, tid
-- @events   syscalls:sys_exit_write|syscalls:sys_exit_writev|
--   syscalls:sys_exit_pwrite64|syscalls:sys_exit_copy_file_range|
--   syscalls:sys_exit_sendfile64|syscalls:sys_enter_sync|
--   syscalls:sys_enter_fsync|syscalls:sys_enter_fdatasync|
--   syscalls:sys_enter_syncfs
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_sync,
--   syscalls:sys_enter_fsync, sched:sched_process_exit,
--   writeback:global_dirty_state
-- @column   phase TEXT copy, or the name of the call that syncs
-- @column   comm TEXT its name at that time; as in throttle_by_task
-- @column   ts INTEGER trace clock, start of the first call
-- @column   dur INTEGER ns, to the end of the last call; a call that had not
--   ended goes to the trace's end
-- @column   calls_count INTEGER calls
-- @column   in_calls_ns INTEGER time inside the calls
-- @column   call_max_ns INTEGER longest call
-- @column   written_bytes INTEGER of its write calls; NULL for a sync
-- @column   written_bytes_per_s REAL over dur
-- @column   dirty_start_bytes INTEGER dirty and writeback pages when it began;
--   NULL = not sampled before
-- @column   dirty_end_bytes INTEGER when it ended
-- @column   dirty_max_bytes INTEGER most in between; NULL = not sampled
-- @column   dirty_mean_bytes INTEGER mean of the samples in between
-- @column   samples_count INTEGER global_dirty_state events in between
-- @metric   dur lower: how long a user waits for the copy, or for the sync that
--   makes it safe
-- @metric   dirty_max_bytes lower: data that was in memory only: a crash would
--   have lost it, and a sync had to write it
-- @source   seen in test_writebehind.sh, mail of 2019-09-20
WITH
  call AS (
    SELECT 'copy' AS phase, w.tid, w.ts, w.end_ts, w.written_bytes
    FROM wb_call AS w
    -- No standard error, as in throttle_by_task.
    WHERE w.written_bytes > 0 AND (w.fd IS NULL OR w.fd <> 2)
    UNION ALL
    -- Those that were entered in the trace.
    SELECT s.call, s.tid, s.ts, s.end_ts, NULL
    FROM wb_call AS s
    WHERE s.is_sync = 1
      AND s.end_ts IS NOT NULL
      AND (s.cut IS NULL OR s.errno IS NULL)
  ),
  phase AS (
    SELECT
      c.phase, c.tid, t.task_id, t.comm,
      min(c.ts) AS ts,
      max(c.end_ts) AS end_ts,
      count(*) AS calls_count,
      sum(c.end_ts - c.ts) AS in_calls_ns,
      max(c.end_ts - c.ts) AS call_max_ns,
      sum(c.written_bytes) AS written_bytes
    FROM call AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    LEFT JOIN wb_task AS t
      ON t.tid = c.tid AND c.ts >= t.from_ts AND c.ts < t.until_ts
    WHERE in_time!(c.ts, b)
      AND (p.tid IS NULL OR c.tid = p.tid)
      AND (
        p.comm_glob IS NULL
        OR coalesce(t.comm, 'tid ' || c.tid) GLOB p.comm_glob
      )
    GROUP BY c.phase, c.tid, t.task_id, t.comm
  ),
  state AS (
    SELECT
      g.seq, g.ts,
      g.ts / u.second_ns AS second,
      (g.nr_dirty + g.nr_writeback + coalesce(g.nr_unstable, 0)) * u.page_bytes
        AS dirty_bytes
    FROM raw_global_dirty_state AS g
    CROSS JOIN wb_units AS u
  ),
  -- The last sample before each end of a phase.
  moment AS (
    SELECT d.ts, d.seq, d.seq AS sample_seq, NULL AS phase, NULL AS task_id,
      NULL AS at_end
    FROM state AS d
    UNION ALL
    SELECT p.ts, NULL, NULL, p.phase, p.task_id, 0 FROM phase AS p
    UNION ALL
    SELECT p.end_ts, NULL, NULL, p.phase, p.task_id, 1 FROM phase AS p
  ),
  latest AS (
    SELECT
      m.phase, m.task_id, m.at_end,
      max(m.sample_seq) OVER (
        ORDER BY m.ts, m.phase IS NOT NULL, m.seq ROWS UNBOUNDED PRECEDING
      ) AS sample_seq
    FROM moment AS m
  ),
  level AS (
    SELECT l.phase, l.task_id, l.at_end, d.dirty_bytes
    FROM latest AS l
    JOIN state AS d ON d.seq = l.sample_seq
    WHERE l.phase IS NOT NULL
  ),
  -- Seconds that lie within a phase are added up whole, those at its ends
  -- sample by sample: no phase reads all samples.
  second_sum AS (
    SELECT
      s.second,
      count(*) AS samples_count,
      sum(s.dirty_bytes) AS dirty_sum,
      max(s.dirty_bytes) AS dirty_max
    FROM state AS s
    GROUP BY s.second
  ),
  span AS (
    SELECT
      p.phase, p.task_id, p.ts, p.end_ts,
      p.ts / u.second_ns AS first_second,
      p.end_ts / u.second_ns AS last_second
    FROM phase AS p
    CROSS JOIN wb_units AS u
  ),
  part AS (
    SELECT n.phase, n.task_id, s.samples_count, s.dirty_sum, s.dirty_max
    FROM span AS n
    JOIN second_sum AS s
      ON s.second > n.first_second AND s.second < n.last_second
    UNION ALL
    SELECT n.phase, n.task_id, 1, s.dirty_bytes, s.dirty_bytes
    FROM span AS n
    JOIN state AS s ON s.second = n.first_second
    WHERE s.ts >= n.ts AND s.ts <= n.end_ts
    UNION ALL
    SELECT n.phase, n.task_id, 1, s.dirty_bytes, s.dirty_bytes
    FROM span AS n
    JOIN state AS s ON s.second = n.last_second
    WHERE n.last_second > n.first_second AND s.ts <= n.end_ts
  ),
  inside AS (
    SELECT
      r.phase, r.task_id,
      sum(r.samples_count) AS samples_count,
      max(r.dirty_max) AS dirty_max,
      sum(r.dirty_sum) / sum(r.samples_count) AS dirty_mean
    FROM part AS r
    GROUP BY r.phase, r.task_id
  )
SELECT
  p.phase, p.tid,
  coalesce(p.comm, 'tid ' || p.tid) AS comm,
  p.ts,
  p.end_ts - p.ts AS dur,
  p.calls_count, p.in_calls_ns, p.call_max_ns, p.written_bytes,
  1.0 * p.written_bytes * u.second_ns / nullif(p.end_ts - p.ts, 0)
    AS written_bytes_per_s,
  a.dirty_bytes AS dirty_start_bytes,
  z.dirty_bytes AS dirty_end_bytes,
  i.dirty_max AS dirty_max_bytes,
  i.dirty_mean AS dirty_mean_bytes,
  coalesce(i.samples_count, 0) AS samples_count
FROM phase AS p
CROSS JOIN wb_units AS u
LEFT JOIN inside AS i ON i.phase = p.phase AND i.task_id = p.task_id
LEFT JOIN level AS a
  ON a.phase = p.phase AND a.task_id = p.task_id AND a.at_end = 0
LEFT JOIN level AS z
  ON z.phase = p.phase AND z.task_id = p.task_id AND z.at_end = 1
ORDER BY p.ts, p.tid, p.task_id, p.phase;
