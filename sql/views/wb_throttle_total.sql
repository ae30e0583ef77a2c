-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_total
-- @summary  All balance_dirty_pages events of a task and wb in the time of
--   interest, counted.
-- @grain    task under a name, bdi, cgroup; order task_id, bdi, cgroup_ino
-- @needs    raw_balance_dirty_pages, wb_throttle_bounds, wb_task, wb_cgroup,
--   wb_params
-- @events   writeback:balance_dirty_pages
-- @column   tid INTEGER thread
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER events
-- @column   first_seq INTEGER of its first event
-- @column   first_ts INTEGER ns, of its first event
-- @column   last_ts INTEGER ns, of its last event
-- @materialize
CREATE VIEW wb_throttle_total AS
WITH
  -- Whether a tid is one task with one name, and all of the trace is asked for.
  plain AS (
    SELECT 1 AS is_plain
    FROM wb_params AS p
    WHERE p.t0_ns IS NULL
      AND p.t1_ns IS NULL
      AND NOT EXISTS (SELECT 1 FROM wb_cgroup)
      AND NOT EXISTS (
        SELECT t.tid FROM wb_task AS t GROUP BY t.tid HAVING count(*) > 1
      )
  ),
  -- Counted from an index that ingest made, in its order; the plus keeps SQLite
  -- from going through the table by seq.
  simple AS (
    SELECT
      r.tid,
      r.bdi,
      r.cgroup_ino,
      count(*) AS events_count,
      min(r.seq) AS first_seq,
      max(r.seq) AS last_seq
    FROM raw_balance_dirty_pages AS r
    WHERE EXISTS (SELECT 1 FROM plain)
    GROUP BY r.tid, r.bdi, r.cgroup_ino
  ),
  counted AS (
    SELECT
      t.task_id,
      t.tid,
      s.bdi,
      s.cgroup_ino,
      s.events_count,
      s.first_seq,
      s.last_seq
    FROM simple AS s
    JOIN wb_task AS t ON t.tid = s.tid
    UNION ALL
    SELECT
      t.task_id,
      t.tid,
      r.bdi,
      r.cgroup_ino,
      count(*),
      min(r.seq),
      max(r.seq)
    FROM wb_task AS t
    CROSS JOIN raw_balance_dirty_pages AS r ON r.tid = t.tid
    WHERE +r.seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND +r.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
      AND +r.seq >= t.from_seq
      AND +r.seq < t.until_seq
      AND NOT EXISTS (SELECT 1 FROM plain)
      AND NOT EXISTS (SELECT 1 FROM wb_cgroup)
    GROUP BY t.task_id, r.bdi, r.cgroup_ino
    UNION ALL
    SELECT
      t.task_id,
      t.tid,
      r.bdi,
      g.cgroup_ino,
      count(*),
      min(r.seq),
      max(r.seq)
    FROM wb_cgroup AS g
    CROSS JOIN raw_balance_dirty_pages AS r ON r.cgroup_path = g.path
    CROSS JOIN wb_task AS t ON t.tid = r.tid
    WHERE r.seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND r.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
      AND r.seq >= t.from_seq
      AND r.seq < t.until_seq
    GROUP BY t.task_id, t.tid, r.bdi, g.cgroup_ino
  )
SELECT
  c.tid,
  c.task_id,
  c.bdi,
  c.cgroup_ino,
  c.events_count,
  c.first_seq,
  f.ts AS first_ts,
  l.ts AS last_ts
FROM counted AS c
CROSS JOIN raw_balance_dirty_pages AS f ON f.seq = c.first_seq
CROSS JOIN raw_balance_dirty_pages AS l ON l.seq = c.last_seq;
