-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_completion_wait
-- @summary  Waits for the flusher in balance_dirty_pages() of the patches of
--   February 2011: from waiting to woken of the same task.
-- @grain    wait; order seq
-- @needs    raw_writeback_balance_dirty_pages_waiting,
--   raw_writeback_balance_dirty_pages_woken, wb_bounds, wb_task, wb_units
-- @events   writeback:writeback_balance_dirty_pages_waiting
-- @optional writeback:writeback_balance_dirty_pages_woken
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, start of the wait
-- @column   tid INTEGER thread that waits
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   asked_bytes INTEGER pages that it wants to see written
-- @column   wait_ns INTEGER until it was woken; NULL = not in the trace
-- @column   slept_ns INTEGER the same, or to the trace's end where it still
--   waits; NULL = the end is lost: the task waits again
-- @source   patch of 2011-02-04, fs/fs-writeback.c
CREATE VIEW wb_completion_wait AS
WITH
  steps AS (
    SELECT w.seq, w.ts, w.tid, w.bdi, w.pages, 1 AS is_wait
    FROM raw_writeback_balance_dirty_pages_waiting AS w
    UNION ALL
    SELECT k.seq, k.ts, k.tid, k.bdi, NULL, 0
    FROM raw_writeback_balance_dirty_pages_woken AS k
  ),
  followed AS (
    SELECT
      s.seq,
      s.ts,
      s.tid,
      s.bdi,
      s.pages,
      s.is_wait,
      lead(s.is_wait) OVER task AS next_is_wait,
      lead(s.ts) OVER task AS next_ts
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  )
SELECT
  f.seq,
  f.ts,
  f.tid,
  coalesce(t.comm, 'tid ' || f.tid) AS comm,
  t.task_id,
  f.bdi,
  f.pages * u.page_bytes AS asked_bytes,
  CASE WHEN f.next_is_wait = 0 THEN f.next_ts - f.ts END AS wait_ns,
  CASE
    WHEN coalesce(f.next_is_wait, 0) = 0
      THEN coalesce(f.next_ts, b.last_ts) - f.ts
  END AS slept_ns
FROM followed AS f
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_task AS t
  ON t.tid = f.tid AND f.seq >= t.from_seq AND f.seq < t.until_seq
WHERE f.is_wait = 1;
