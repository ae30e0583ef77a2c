-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_edge
-- @summary  Which balance_dirty_pages events each window has.
-- @grain    window; order window_index
-- @key      window_index
-- @needs    raw_balance_dirty_pages, wb_window, wb_bounds
-- @events   writeback:balance_dirty_pages
-- @column   window_index INTEGER of wb_window
-- @column   first_seq INTEGER the first event at or after its start
-- @column   after_seq INTEGER the first event behind it
-- @materialize
CREATE VIEW wb_throttle_edge AS
WITH RECURSIVE
  ends AS (
    SELECT
      (SELECT min(r.seq) FROM raw_balance_dirty_pages AS r) AS first_seq,
      (SELECT max(r.seq) FROM raw_balance_dirty_pages AS r) + 1 AS after_seq
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
  -- Events are in the order of time: halve the numbers that are left.
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
            SELECT r.ts
            FROM raw_balance_dirty_pages AS r
            WHERE r.seq >= (h.low + h.high) / 2
            ORDER BY r.seq
            LIMIT 1
          )
          THEN (h.low + h.high) / 2 + 1
        ELSE h.low
      END,
      CASE
        WHEN h.ts > (
            SELECT r.ts
            FROM raw_balance_dirty_pages AS r
            WHERE r.seq >= (h.low + h.high) / 2
            ORDER BY r.seq
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
      -- Other events have numbers, too: the next one of these.
      coalesce(
        (
          SELECT min(r.seq)
          FROM raw_balance_dirty_pages AS r
          WHERE r.seq >= h.low
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
SELECT r.window_index, r.first_seq, r.after_seq
FROM ranged AS r
WHERE r.after_seq IS NOT NULL;
