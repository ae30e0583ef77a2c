-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_total
-- @summary  All balance_dirty_pages events of a task and wb in the time of
--   interest, counted.
-- @grain    task under a name, bdi, cgroup; order tid, bdi, cgroup_ino
-- @needs    raw_balance_dirty_pages, wb_throttle_bounds, wb_cgroup, wb_task
-- @events   writeback:balance_dirty_pages
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER events
-- @column   first_seq INTEGER of its first event
-- @column   first_ts INTEGER ns, of its first event
-- @column   last_ts INTEGER ns, of its last event
-- @materialize
CREATE VIEW wb_throttle_total AS
WITH
  -- Tids that several tasks had, or one under several names.
  shared AS (
    SELECT k.tid, k.task_id, k.from_seq, k.until_seq
    FROM wb_task AS k
    WHERE k.tid IN (
      SELECT t.tid FROM wb_task AS t GROUP BY t.tid HAVING count(*) > 1
    )
  ),
  counted AS (
    -- In the order of an index that ingest made, and from it alone: the plus
    -- keeps SQLite from going through the table by seq.
    SELECT
      NULL AS task_id,
      r.tid,
      r.bdi,
      r.cgroup_ino,
      count(*) AS events_count,
      min(r.seq) AS first_seq,
      max(r.seq) AS last_seq
    FROM raw_balance_dirty_pages AS r
    WHERE +r.seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND +r.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
      AND NOT EXISTS (SELECT 1 FROM wb_cgroup)
    GROUP BY r.tid, r.bdi, r.cgroup_ino
    UNION ALL
    SELECT
      NULL,
      r.tid,
      r.bdi,
      g.cgroup_ino,
      count(*),
      min(r.seq),
      max(r.seq)
    FROM wb_cgroup AS g
    CROSS JOIN raw_balance_dirty_pages AS r ON r.cgroup_path = g.path
    WHERE r.seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND r.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
    GROUP BY r.tid, r.bdi, g.cgroup_ino
    UNION ALL
    SELECT
      k.task_id,
      r.tid,
      r.bdi,
      coalesce(r.cgroup_ino, g.cgroup_ino),
      count(*),
      min(r.seq),
      max(r.seq)
    FROM shared AS k
    CROSS JOIN raw_balance_dirty_pages AS r
      ON r.tid = k.tid AND r.seq >= k.from_seq AND r.seq < k.until_seq
    LEFT JOIN wb_cgroup AS g ON g.path = r.cgroup_path
    WHERE r.seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND r.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
    GROUP BY k.task_id, r.tid, r.bdi, coalesce(r.cgroup_ino, g.cgroup_ino)
  ),
  -- The rows of shared tids are those of their tasks.
  owned AS (
    SELECT
      coalesce(c.task_id, k.task_id) AS task_id,
      c.tid,
      c.bdi,
      c.cgroup_ino,
      c.events_count,
      c.first_seq,
      c.last_seq
    FROM counted AS c
    LEFT JOIN wb_task AS k
      ON c.task_id IS NULL
      AND k.tid = c.tid
      AND c.first_seq >= k.from_seq
      AND c.first_seq < k.until_seq
    WHERE c.task_id IS NOT NULL
      OR c.tid IS NULL
      OR c.tid NOT IN (SELECT h.tid FROM shared AS h)
  )
SELECT
  c.task_id,
  c.tid,
  c.bdi,
  c.cgroup_ino,
  c.events_count,
  c.first_seq,
  f.ts AS first_ts,
  l.ts AS last_ts
FROM owned AS c
CROSS JOIN raw_balance_dirty_pages AS f ON f.seq = c.first_seq
CROSS JOIN raw_balance_dirty_pages AS l ON l.seq = c.last_seq;
