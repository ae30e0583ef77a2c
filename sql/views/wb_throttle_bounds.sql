-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_bounds
-- @summary  The time of interest as numbers of balance_dirty_pages events.
-- @grain    one row
-- @needs    raw_balance_dirty_pages, wb_params
-- @events   writeback:balance_dirty_pages
-- @column   start_seq INTEGER first event of the time of interest
-- @column   end_seq INTEGER first event behind it
-- @materialize
CREATE VIEW wb_throttle_bounds AS
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
