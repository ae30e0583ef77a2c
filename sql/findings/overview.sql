-- SPDX-License-Identifier: Apache-2.0
-- @finding   overview
-- @title     What the run was
-- @summary   What the machine dirtied and wrote, and how long tasks waited.
-- @severity  fact
-- @confidence measured
-- @sentence  In [{seen_ns} of ]{duration_ns} the machine dirtied
--   {dirtied_bytes} and wrote {written_bytes}{failed:raw}[; {tasks_count:task}
--   waited {lost_ns} in all].
-- @evidence  throughput: dirtied_bytes = sum(dirtied_bytes); written_bytes =
--   sum(written_bytes); seen_ns = sum(window_ns)
-- @evidence  lost_time: lost_ns = sum(total_ns) - sum(total_ns,
--   finding=flusher_waits_journal); tasks_count = count(tid) - count(tid,
--   finding=flusher_waits_journal)
-- @evidence  trace_state: duration_ns = max(duration_ns)
-- @events    writeback:global_dirty_state
-- @column    cost_task_ns INTEGER 0
-- @column    duration_ns INTEGER length of the time of interest
-- @column    dirtied_bytes INTEGER pages dirtied
-- @column    written_bytes INTEGER pages whose writeback ended
-- @column    failed TEXT that writes that failed are among them; empty where no
--   event tells of one
-- @column    seen_ns INTEGER from the first to the last time that these are
--   told, where that is not nearly all of the time
-- @column    tasks_count INTEGER tasks that waited, without kernel threads;
--   NULL = none
-- @column    lost_ns INTEGER their waits; NULL = none
-- @source    docs/findings.md
WITH
  flow AS (
    SELECT
      sum(f.dirtied_bytes) AS dirtied_bytes,
      sum(f.written_bytes) AS written_bytes,
      sum(f.window_ns) AS seen_ns
    FROM throughput AS f
  ),
  loss AS (
    SELECT nullif(count(DISTINCT l.tid), 0) AS tasks_count, sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding IS NOT 'flusher_waits_journal'
      AND in_time!(l.ts, b)
  )
SELECT
  0 AS cost_task_ns,
  b.asked_ns AS duration_ns,
  f.dirtied_bytes, f.written_bytes,
  CASE WHEN EXISTS (SELECT 1 FROM write_errors)
    THEN ', counting writes that failed'
    ELSE ''
  END AS failed,
  CASE
    WHEN f.seen_ns < v.busy_ratio * b.asked_ns
      THEN f.seen_ns
  END AS seen_ns,
  l.tasks_count,
  l.dur AS lost_ns
FROM flow AS f
CROSS JOIN loss AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_rule AS v
ORDER BY f.dirtied_bytes;
