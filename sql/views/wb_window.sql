-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_window
-- @summary  Windows of equal length that tile the time of interest. Windows
--   are counted from its start, so the last one may be cut short. There are
--   100,000 at most: whoever sets the length makes it long enough.
-- @grain    window; order window_index
-- @key      window_index
-- @needs    wb_bounds, wb_params
-- @column   window_index INTEGER 0, 1, 2 ...
-- @column   window_start_ns INTEGER trace clock
-- @column   window_end_ns INTEGER trace clock
-- @materialize
CREATE VIEW wb_window AS
WITH RECURSIVE
  tiles(window_index, window_start_ns, window_ns, end_ts) AS (
    SELECT 0, b.start_ts, p.window_ns, b.end_ts
    FROM wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE b.start_ts IS NOT NULL
    UNION ALL
    SELECT
      t.window_index + 1,
      t.window_start_ns + t.window_ns,
      t.window_ns,
      t.end_ts
    FROM tiles AS t
    WHERE t.window_start_ns + t.window_ns < t.end_ts
      AND t.window_index < 99999
  )
SELECT
  t.window_index,
  t.window_start_ns,
  t.window_start_ns + t.window_ns AS window_end_ns
FROM tiles AS t;
