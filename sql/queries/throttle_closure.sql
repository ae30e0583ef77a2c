-- SPDX-License-Identifier: Apache-2.0
-- What is wrong.

-- @query    throttle_closure
-- @title    Are all events of throttling there?
-- @summary  The balance_dirty_pages events of each task beside what has to go
--   with them: of the first 20,000 global_dirty_state of the trace.
-- @read     In balance_dirty_pages() a task looks at the machine's dirty pages,
--   and above the middle of both thresholds, where free run ends, it fires
--   balance_dirty_pages next. A look that is followed by another one of the
--   task lacks its event: it was lost, filtered, or left out. An event cannot
--   fire before the pause of the one before it is over: pauses are then too
--   long. Left out are tasks without such events, or with few, as those that
--   read /proc/vmstat or write to a bdi with a strict limit; below free run,
--   where memory cgroups and strict limits throttle, nothing can be told.
-- @filters  tid, task
-- @grain    task; order missing_count descending
-- @keys     tid, comm
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   tid INTEGER thread
-- @column   comm TEXT its last known name
-- @column   looks_count INTEGER global_dirty_state above free run that
--   something of the task follows
-- @column   missing_count INTEGER of these, without its balance_dirty_pages
-- @column   pauses_count INTEGER balance_dirty_pages with a pause that another
--   one of the task follows
-- @column   early_count INTEGER of these, where that fires before the pause is
--   over
-- @metric   missing_count neutral: events that the trace should have, so that
--   what was computed from the others is too small
-- @source   mm/page-writeback.c balance_dirty_pages(), domain_dirty_limits()
WITH
  range AS MATERIALIZED (
    SELECT coalesce(max(CASE l.is_state WHEN 1 THEN l.seq END), max(l.seq))
      AS last_seq
    FROM (
      SELECT s.seq, 1 AS is_state
      FROM (
        SELECT g.seq FROM raw_global_dirty_state AS g ORDER BY g.seq LIMIT 20000
      ) AS s
      UNION ALL
      SELECT e.seq, 0
      FROM (
        SELECT p.seq FROM raw_balance_dirty_pages AS p ORDER BY p.seq
        LIMIT 20000
      ) AS e
    ) AS l
  ),
  steps AS (
    SELECT
      g.tid, g.seq, g.ts,
      -- The event's numbers are read a moment before those that decide.
      dirty_pages!(g) > (g.thresh + g.bg_thresh) * 0.51 AS is_look
    FROM range AS r
    CROSS JOIN raw_global_dirty_state AS g
    WHERE g.seq <= r.last_seq
    UNION ALL
    SELECT e.tid, e.seq, e.ts, NULL
    FROM range AS r
    CROSS JOIN raw_balance_dirty_pages AS e
    WHERE e.seq <= r.last_seq
  ),
  followed AS (
    SELECT
      s.tid, s.ts, s.is_look,
      lead(s.seq) OVER task AS next_seq,
      lead(s.is_look) OVER task AS next_is_look
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  looked AS (
    SELECT
      f.tid,
      sum(f.is_look = 1 AND f.next_seq IS NOT NULL) AS looks_count,
      total(f.is_look = 1 AND f.next_is_look IS NOT NULL) AS missing_count
    FROM followed AS f
    CROSS JOIN wb_rule AS v
    GROUP BY f.tid, v.most_ratio
    -- Who only reads counters, or writes to a bdi with a strict limit (FUSE),
    -- looks and fires none.
    HAVING max(f.is_look IS NULL)
      AND total(f.is_look = 1 AND f.next_is_look IS NOT NULL)
        <= v.most_ratio * total(f.is_look = 1)
  ),
  paused AS (
    SELECT
      e.tid,
      count(*) AS pauses_count,
      total(e.ts < p.ts + p.pause * u.ms_ns - v.sleep_late_ns) AS early_count
    FROM range AS r
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
    CROSS JOIN raw_balance_dirty_pages AS e
    JOIN raw_balance_dirty_pages AS p ON p.seq = e.prev_seq
    WHERE p.pause > 0
      AND e.seq <= r.last_seq
      -- Who comes back at once did not sleep (io_uring).
      AND e.ts - p.ts >= v.came_back_ns
    GROUP BY e.tid
  )
SELECT
  t.tid, t.comm,
  coalesce(l.looks_count, 0) AS looks_count,
  CAST(coalesce(l.missing_count, 0) AS INTEGER) AS missing_count,
  coalesce(p.pauses_count, 0) AS pauses_count,
  CAST(coalesce(p.early_count, 0) AS INTEGER) AS early_count
FROM raw_task AS t
CROSS JOIN wb_params AS o
LEFT JOIN looked AS l ON l.tid = t.tid
LEFT JOIN paused AS p ON p.tid = t.tid
WHERE (l.looks_count > 0 OR p.pauses_count > 0)
  AND t.comm NOT GLOB 'kworker/*'
  AND of_task!(t, o)
ORDER BY missing_count DESC, looks_count DESC, t.tid;
