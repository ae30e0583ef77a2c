-- SPDX-License-Identifier: Apache-2.0
-- The time of interest and the windows that it is cut into.

-- @view     wb_bounds
-- @summary  Where the trace begins and ends, and the part that is asked for.
-- @grain    one row
-- @needs    raw_meta, wb_params
-- @column   first_ts INTEGER first event of the trace, trace clock
-- @column   last_ts INTEGER last event of the trace, trace clock
-- @column   start_ts INTEGER first time of interest
-- @column   end_ts INTEGER end of the time of interest
-- @materialize
CREATE VIEW wb_bounds AS
WITH
  meta AS (
    SELECT
      (SELECT m.value FROM raw_meta AS m WHERE m.key = 'first_ts') AS first_ts,
      (SELECT m.value FROM raw_meta AS m WHERE m.key = 'last_ts') AS last_ts,
      -- A log without time stamps: every ts is 0.
      (
        SELECT 0
        FROM raw_meta AS m
        WHERE m.key = 'clock_unit' AND m.value = 'none'
      ) AS only_ts
  )
SELECT
  m.first_ts,
  m.last_ts,
  coalesce(p.t0_ns, m.first_ts, m.only_ts) AS start_ts,
  coalesce(p.t1_ns, m.last_ts + 1, m.only_ts + 1) AS end_ts
FROM meta AS m
CROSS JOIN wb_params AS p;

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

-- @view     wb_lost_window
-- @summary  Windows with a gap, where the ring buffer overran and events are
--   lost. A gap lies before the first event that was kept again, and is counted
--   in that event's window.
-- @grain    window with a gap; order window_index
-- @key      window_index
-- @needs    raw_lost_events, wb_bounds, wb_params
-- @column   window_index INTEGER of wb_window
-- @column   lost_gaps_count INTEGER gaps, of all CPUs
-- @materialize
CREATE VIEW wb_lost_window AS
SELECT
  (l.ts - b.start_ts) / p.window_ns AS window_index,
  count(*) AS lost_gaps_count
FROM raw_lost_events AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE l.ts >= b.start_ts AND l.ts < b.end_ts
GROUP BY 1;
