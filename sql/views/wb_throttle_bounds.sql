-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_bounds
-- @summary  The time of interest as numbers of balance_dirty_pages events.
-- @grain    one row
-- @needs    raw_balance_dirty_pages, wb_bounds
-- @events   writeback:balance_dirty_pages
-- @column   start_seq INTEGER first event of the time of interest
-- @column   end_seq INTEGER first event behind it
-- @materialize
CREATE VIEW wb_throttle_bounds AS
WITH RECURSIVE
  ends AS (
    SELECT
      (SELECT min(r.seq) FROM raw_balance_dirty_pages AS r) AS first_seq,
      (SELECT max(r.seq) FROM raw_balance_dirty_pages AS r) + 1 AS after_seq
  ),
  wanted AS (
    SELECT 0 AS is_end, b.start_ts AS ts FROM wb_bounds AS b
    UNION ALL
    SELECT 1, b.end_ts FROM wb_bounds AS b
  ),
  -- Events are in the order of time: halve the numbers that are left.
  halved(is_end, ts, low, high) AS (
    SELECT w.is_end, w.ts, e.first_seq, e.after_seq
    FROM wanted AS w
    CROSS JOIN ends AS e
    UNION ALL
    SELECT
      h.is_end,
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
  )
SELECT
  max(CASE WHEN h.is_end = 0 THEN h.low END) AS start_seq,
  max(CASE WHEN h.is_end = 1 THEN h.low END) AS end_seq
FROM halved AS h
WHERE h.low >= h.high;
