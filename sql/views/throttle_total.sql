-- SPDX-License-Identifier: Apache-2.0
-- Throttling added up over the time of interest.

-- @view     wb_throttle_total
-- @summary  All balance_dirty_pages events of a task and wb in the time of
--   interest, counted.
-- @grain    task under a name, bdi, cgroup; order task_id, bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER events
-- @column   first_seq INTEGER of its first event
-- @column   last_seq INTEGER of its last event
-- @column   first_ts INTEGER ns, of its first event
-- @column   last_ts INTEGER ns, of its last event
-- @materialize
-- @cost     37
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
  -- Most tasks write to one wb: ingest counted their events. Its index tells
  -- which wb that is.
  ends AS (
    SELECT
      e.tid, e.loaded_count, e.first_seq, e.last_seq,
      low_wb!(e) AS low_seq,
      high_wb!(e) AS high_seq
    FROM raw_event_task AS e
    WHERE substr(e.event, instr(e.event, ':') + 1) = 'balance_dirty_pages'
      AND EXISTS (SELECT 1 FROM plain)
  ),
  placed AS MATERIALIZED (
    SELECT
      e.tid, e.loaded_count, e.first_seq, e.last_seq, l.bdi, l.cgroup_ino,
      l.bdi IS h.bdi AND l.cgroup_ino IS h.cgroup_ino AS is_single
    FROM ends AS e
    CROSS JOIN raw_balance_dirty_pages AS l ON l.seq = e.low_seq
    CROSS JOIN raw_balance_dirty_pages AS h ON h.seq = e.high_seq
  ),
  simple AS (
    SELECT
      p.tid, p.bdi, p.cgroup_ino,
      p.loaded_count AS events_count,
      p.first_seq, p.last_seq
    FROM placed AS p
    WHERE p.is_single = 1
    UNION ALL
    SELECT
      r.tid, r.bdi, r.cgroup_ino,
      count(*),
      min(r.seq),
      max(r.seq)
    FROM placed AS p
    CROSS JOIN raw_balance_dirty_pages AS r ON r.tid = p.tid
    WHERE p.is_single = 0
    GROUP BY r.tid, r.bdi, r.cgroup_ino
  ),
  wbs AS MATERIALIZED (
    SELECT DISTINCT r.tid, r.bdi, r.cgroup_ino
    FROM raw_balance_dirty_pages AS r
    WHERE NOT EXISTS (SELECT 1 FROM plain)
      AND NOT EXISTS (SELECT 1 FROM wb_cgroup)
  ),
  counted AS (
    SELECT
      t.task_id, t.tid, s.bdi, s.cgroup_ino, s.events_count, s.first_seq,
      s.last_seq
    FROM simple AS s
    JOIN wb_task AS t ON t.tid = s.tid
    UNION ALL
    SELECT
      t.task_id, t.tid, r.bdi, r.cgroup_ino,
      count(*),
      min(r.seq),
      max(r.seq)
    FROM wb_task AS t
    CROSS JOIN wbs AS w ON w.tid = t.tid
    -- A range of an index for each name that a thread has had, not all of its
    -- events.
    CROSS JOIN raw_balance_dirty_pages AS r
      ON r.tid = w.tid
      AND r.bdi IS w.bdi
      AND r.cgroup_ino IS w.cgroup_ino
      AND r.seq >= max(
        t.from_seq,
        (SELECT b.start_seq FROM _throttle_bounds AS b)
      )
      AND r.seq < min(
        t.until_seq,
        (SELECT b.end_seq FROM _throttle_bounds AS b)
      )
    GROUP BY t.task_id, r.bdi, r.cgroup_ino
    UNION ALL
    SELECT
      t.task_id, t.tid, r.bdi, g.cgroup_ino,
      count(*),
      min(r.seq),
      max(r.seq)
    FROM wb_cgroup AS g
    CROSS JOIN raw_balance_dirty_pages AS r ON r.cgroup_path = g.path
    CROSS JOIN wb_task AS t ON t.tid = r.tid
    WHERE r.seq >= (SELECT b.start_seq FROM _throttle_bounds AS b)
      AND r.seq < (SELECT b.end_seq FROM _throttle_bounds AS b)
      AND r.seq >= t.from_seq
      AND r.seq < t.until_seq
    GROUP BY t.task_id, t.tid, r.bdi, g.cgroup_ino
  )
SELECT
  c.tid, c.task_id, c.bdi, c.cgroup_ino, c.events_count, c.first_seq,
  c.last_seq,
  f.ts AS first_ts,
  l.ts AS last_ts
FROM counted AS c
CROSS JOIN raw_balance_dirty_pages AS f ON f.seq = c.first_seq
CROSS JOIN raw_balance_dirty_pages AS l ON l.seq = c.last_seq;

-- @view     _throttle_bounds
-- @summary  The time of interest as numbers of balance_dirty_pages events.
-- @grain    one row
-- @column   start_seq INTEGER first event of the time of interest
-- @column   end_seq INTEGER first event behind it
-- @materialize
CREATE VIEW _throttle_bounds AS
SELECT
  CASE
    WHEN p.t0_ns IS NULL
      THEN (SELECT min(r.seq) FROM raw_balance_dirty_pages AS r)
    ELSE (
      SELECT r.seq
      FROM raw_balance_dirty_pages AS r
      WHERE r.ts >= p.t0_ns
      ORDER BY r.seq
      LIMIT 1
    )
  END AS start_seq,
  coalesce(
    CASE
      WHEN p.t1_ns IS NOT NULL
        THEN (
          SELECT r.seq
          FROM raw_balance_dirty_pages AS r
          WHERE r.ts >= p.t1_ns
          ORDER BY r.seq
          LIMIT 1
        )
    END,
    (SELECT max(r.seq) FROM raw_balance_dirty_pages AS r) + 1
  ) AS end_seq
FROM wb_params AS p;
