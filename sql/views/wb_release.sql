-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_release
-- @summary  Which waits belong to which work of the flushers. ordered: the task
--   queued the work and waits for it in a system call such as sync. written:
--   while the work was done, the task slept in balance_dirty_pages() for the
--   same wb, for the first time since the work began. Such a sleep ends by a
--   timer, not by the flusher, but its length follows what the flusher wrote.
-- @grain    wait and work item; order wait_id, work_seq
-- @needs    wb_work, wb_stall
-- @events   writeback:writeback_start, writeback:writeback_written
-- @column   wait_id INTEGER of wb_stall
-- @column   work_seq INTEGER of wb_work
-- @column   kind TEXT ordered or written
-- @column   flow INTEGER number of the arrow between the two
-- @source   mm/page-writeback.c balance_dirty_pages(); fs/fs-writeback.c
--   wb_wait_for_completion()
-- @materialize
CREATE VIEW wb_release AS
WITH
  -- A sleep belongs to the last work of its wb that began before it.
  wb_step AS (
    SELECT
      w.bdi,
      coalesce(w.cgroup_ino, 1) AS cgroup_ino,
      w.started_ts AS ts,
      0 AS is_wait,
      w.seq AS work_seq,
      NULL AS wait_id,
      NULL AS tid
    FROM wb_work AS w
    WHERE w.started_ts IS NOT NULL
    UNION ALL
    SELECT
      s.bdi,
      coalesce(s.cgroup_ino, 1),
      s.ts,
      1,
      NULL,
      s.wait_id,
      s.tid
    FROM wb_stall AS s
    WHERE s.kind = 'throttle' AND s.span_ns IS NOT NULL
  ),
  began AS (
    SELECT
      s.*,
      max(s.work_seq) OVER (
        PARTITION BY s.bdi, s.cgroup_ino ORDER BY s.ts, s.is_wait DESC
        ROWS UNBOUNDED PRECEDING
      ) AS last_work_seq
    FROM wb_step AS s
  ),
  first_sleep AS (
    SELECT
      b.wait_id,
      b.ts,
      b.last_work_seq,
      lag(b.last_work_seq) OVER (
        PARTITION BY b.bdi, b.cgroup_ino, b.tid ORDER BY b.ts, b.wait_id
      ) AS before_work_seq
    FROM began AS b
    WHERE b.is_wait = 1
  ),
  -- Who queues work and waits for it does so within one wait.
  task_step AS (
    SELECT
      w.queued_tid AS tid,
      w.queued_ts AS ts,
      1 AS is_work,
      w.seq AS work_seq,
      NULL AS wait_id
    FROM wb_work AS w
    WHERE w.queued_tid IS NOT NULL
    UNION ALL
    SELECT s.tid, s.ts, 0, NULL, s.wait_id
    FROM wb_stall AS s
    WHERE s.kind IN ('sync', 'fsync') AND s.span_ns IS NOT NULL
  ),
  -- The ids of waits of one rank grow with time.
  within AS (
    SELECT
      t.work_seq,
      t.ts,
      max(t.wait_id) OVER (
        PARTITION BY t.tid ORDER BY t.ts, t.is_work ROWS UNBOUNDED PRECEDING
      ) AS wait_id
    FROM task_step AS t
  )
SELECT
  f.wait_id,
  f.last_work_seq AS work_seq,
  'written' AS kind,
  f.wait_id * 2 AS flow
FROM first_sleep AS f
JOIN wb_work AS w ON w.seq = f.last_work_seq
WHERE (f.before_work_seq IS NULL OR f.before_work_seq <> f.last_work_seq)
  AND (w.finished_ts IS NULL OR f.ts < w.finished_ts)
UNION ALL
SELECT i.wait_id, i.work_seq, 'ordered', i.work_seq * 2 + 1
FROM within AS i
JOIN wb_stall AS s ON s.wait_id = i.wait_id
WHERE i.work_seq IS NOT NULL AND s.ts + s.span_ns >= i.ts;
