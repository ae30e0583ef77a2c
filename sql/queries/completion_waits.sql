-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    completion_waits
-- @title    Waits for pages to be written (patches of 2011)
-- @summary  How long each task waited for the flusher, in traces of the patches
--   that had events for it.
-- @read     A wait ends when the flusher has written the pages that the task
--   asked for. Later kernels have no such events: see throttle_by_task. Shares
--   of windows are in throttle_windows.
-- @filters  range, bdi, tid, task
-- @grain    task and bdi; order wait_ns descending, tid, bdi
-- @events   writeback:writeback_balance_dirty_pages_waiting
-- @optional writeback:writeback_balance_dirty_pages_woken
-- @column   tid INTEGER thread that waits
-- @column   comm TEXT its name
-- @column   bdi TEXT backing device
-- @column   waits_count INTEGER waits
-- @column   unfinished_count INTEGER waits whose end is not in the trace
-- @column   wait_ns INTEGER waited, together
-- @column   wait_max_ns INTEGER longest wait
-- @column   asked_bytes INTEGER pages asked for, together
-- @metric   wait_ns lower: time the task was blocked until the kernel had
--   written enough, all its waits
-- @metric   wait_max_ns lower: longest wait of one write of the task
WITH
  wait AS (
    SELECT
      c.tid,
      coalesce(t.comm, 'tid ' || c.tid) AS comm,
      c.device AS bdi,
      c.ts, c.bytes,
      CASE WHEN c.cut IS NULL THEN c.end_ts - c.ts END AS wait_ns
    FROM wb_call AS c
    LEFT JOIN wb_task AS t ON task_of!(t, c)
    WHERE c.call = 'balance_dirty_pages_waiting'
  )
SELECT
  w.tid, w.comm, w.bdi,
  count(*) AS waits_count,
  count(*) - count(w.wait_ns) AS unfinished_count,
  sum(w.wait_ns) AS wait_ns,
  max(w.wait_ns) AS wait_max_ns,
  sum(w.bytes) AS asked_bytes
FROM wait AS w
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(w.ts, b)
  AND of_task!(w, p)
  AND (p.bdi IS NULL OR w.bdi = p.bdi)
GROUP BY w.tid, w.comm, w.bdi
ORDER BY wait_ns DESC, w.tid, w.bdi;
