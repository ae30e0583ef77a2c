-- SPDX-License-Identifier: Apache-2.0
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
