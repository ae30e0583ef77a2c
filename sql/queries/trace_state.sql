-- SPDX-License-Identifier: Apache-2.0
-- The run itself.

-- @query    trace_state
-- @title    Is the trace whole?
-- @summary  Events that were lost, and damage: whether numbers can be believed.
-- @read     matters 1: so much is lost that no verdict is given.
-- @grain    one row
-- @filters  range
-- @needs    wb_trace_state, wb_bounds
-- @column   gaps_count INTEGER times that the ring buffer overran; NULL = none,
--   or their events are not counted
-- @column   lost_count INTEGER events that are lost; NULL likewise
-- @column   unknown_gaps_count INTEGER times that it overran, and nobody knows
--   how many events that cost; NULL = none
-- @column   lost_ratio REAL lost events over all that happened
-- @column   state TEXT damaged, read only in part; NULL = whole
-- @column   matters INTEGER 1: no verdict
-- @column   duration_ns INTEGER length of the time of interest
SELECT
  s.gaps_count,
  s.lost_count,
  s.unknown_gaps_count,
  s.lost_ratio,
  s.state,
  s.matters,
  min(b.end_ts, b.last_ts) - b.start_ts AS duration_ns
FROM wb_trace_state AS s
CROSS JOIN wb_bounds AS b
ORDER BY s.matters;
