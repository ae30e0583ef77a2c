-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_edge
-- @summary  Which global_dirty_state samples each window has.
-- @grain    window; order window_index
-- @key      window_index
-- @needs    raw_global_dirty_state, wb_window, wb_bounds
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   start_ts INTEGER ns, of the window
-- @column   end_ts INTEGER ns, of the window, of the time of interest or of the
--   trace: what comes first
-- @column   first_seq INTEGER the first sample at or after its start
-- @column   after_seq INTEGER the first sample behind it; the window has
--   samples when this is larger
-- @column   carried_seq INTEGER the sample that is in force at its start;
--   NULL = none before
-- @column   last_seq INTEGER the last sample before its end; NULL = none
-- @materialize
CREATE VIEW wb_dirty_edge AS
WITH RECURSIVE
  ends AS (
    SELECT
      (SELECT min(g.seq) FROM raw_global_dirty_state AS g) AS first_seq,
      (SELECT max(g.seq) FROM raw_global_dirty_state AS g) + 1 AS after_seq
  ),
  -- Starts of windows, and the end of the last one.
  border AS (
    SELECT w.window_index, w.window_start_ns AS ts
    FROM wb_window AS w
    UNION ALL
    SELECT max(w.window_index) + 1, b.end_ts
    FROM wb_window AS w
    CROSS JOIN wb_bounds AS b
    GROUP BY b.end_ts
  ),
  -- Samples are in the order of time: halve the numbers that are left.
  halved(window_index, ts, low, high) AS (
    SELECT w.window_index, w.ts, e.first_seq, e.after_seq
    FROM border AS w
    CROSS JOIN ends AS e
    WHERE e.first_seq IS NOT NULL
    UNION ALL
    SELECT
      h.window_index,
      h.ts,
      CASE
        WHEN h.ts > (
            SELECT g.ts
            FROM raw_global_dirty_state AS g
            WHERE g.seq >= (h.low + h.high) / 2
            ORDER BY g.seq
            LIMIT 1
          )
          THEN (h.low + h.high) / 2 + 1
        ELSE h.low
      END,
      CASE
        WHEN h.ts > (
            SELECT g.ts
            FROM raw_global_dirty_state AS g
            WHERE g.seq >= (h.low + h.high) / 2
            ORDER BY g.seq
            LIMIT 1
          )
          THEN h.high
        ELSE (h.low + h.high) / 2
      END
    FROM halved AS h
    WHERE h.low < h.high
  ),
  found AS (
    SELECT
      h.window_index,
      -- Other events have numbers, too: the next one that is a sample.
      coalesce(
        (
          SELECT min(g.seq)
          FROM raw_global_dirty_state AS g
          WHERE g.seq >= h.low
        ),
        h.low
      ) AS first_seq
    FROM halved AS h
    WHERE h.low >= h.high
  ),
  ranged AS (
    SELECT
      f.window_index,
      f.first_seq,
      lead(f.first_seq) OVER (ORDER BY f.window_index) AS after_seq
    FROM found AS f
  )
SELECT
  r.window_index,
  w.window_start_ns AS start_ts,
  CASE
    WHEN w.window_end_ns <= b.end_ts AND w.window_end_ns <= b.last_ts
      THEN w.window_end_ns
    WHEN b.end_ts <= b.last_ts THEN b.end_ts
    ELSE b.last_ts
  END AS end_ts,
  r.first_seq,
  r.after_seq,
  (
    SELECT max(g.seq)
    FROM raw_global_dirty_state AS g
    WHERE g.seq < r.first_seq
  ) AS carried_seq,
  (
    SELECT max(g.seq)
    FROM raw_global_dirty_state AS g
    WHERE g.seq < r.after_seq
  ) AS last_seq
FROM ranged AS r
JOIN wb_window AS w ON w.window_index = r.window_index
CROSS JOIN wb_bounds AS b;
