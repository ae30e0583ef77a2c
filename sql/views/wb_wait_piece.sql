-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_wait_piece
-- @summary  Which wait each moment of a task belongs to: the innermost one.
--   Pieces of a task do not overlap, so they never add up to more than the time
--   that has passed.
-- @grain    piece of a wait; order tid, from_ts
-- @needs    wb_wait
-- @column   wait_id INTEGER of wb_wait
-- @column   tid INTEGER thread
-- @column   from_ts INTEGER ns, start of the piece
-- @column   to_ts INTEGER ns, end of the piece
-- @materialize
CREATE VIEW wb_wait_piece AS
WITH
  borders AS (
    SELECT w.tid, w.ts, w.rank, 1 AS step, w.wait_id
    FROM wb_wait AS w
    WHERE w.end_ts IS NOT NULL
    UNION ALL
    SELECT w.tid, w.end_ts, w.rank, -1, NULL
    FROM wb_wait AS w
    WHERE w.end_ts IS NOT NULL
  ),
  -- Waits of one rank do not overlap: the last one begun is the one going on.
  going_on AS (
    SELECT
      b.tid,
      b.ts AS from_ts,
      lead(b.ts) OVER (PARTITION BY b.tid ORDER BY b.ts, b.step, b.wait_id)
        AS to_ts,
      sum(CASE WHEN b.rank = 4 THEN b.step ELSE 0 END) OVER task AS in_4,
      sum(CASE WHEN b.rank = 3 THEN b.step ELSE 0 END) OVER task AS in_3,
      sum(CASE WHEN b.rank = 2 THEN b.step ELSE 0 END) OVER task AS in_2,
      sum(CASE WHEN b.rank = 1 THEN b.step ELSE 0 END) OVER task AS in_1,
      max(CASE WHEN b.rank = 4 THEN b.wait_id END) OVER task AS wait_4,
      max(CASE WHEN b.rank = 3 THEN b.wait_id END) OVER task AS wait_3,
      max(CASE WHEN b.rank = 2 THEN b.wait_id END) OVER task AS wait_2,
      max(CASE WHEN b.rank = 1 THEN b.wait_id END) OVER task AS wait_1
    FROM borders AS b
    WINDOW task AS (
      PARTITION BY b.tid ORDER BY b.ts, b.step, b.wait_id
      ROWS UNBOUNDED PRECEDING
    )
  )
SELECT
  CASE
    WHEN g.in_4 > 0 THEN g.wait_4
    WHEN g.in_3 > 0 THEN g.wait_3
    WHEN g.in_2 > 0 THEN g.wait_2
    ELSE g.wait_1
  END AS wait_id,
  g.tid,
  g.from_ts,
  g.to_ts
FROM going_on AS g
WHERE g.to_ts > g.from_ts
  AND (g.in_4 > 0 OR g.in_3 > 0 OR g.in_2 > 0 OR g.in_1 > 0);
