-- SPDX-License-Identifier: Apache-2.0
-- The run itself.

-- @query    trace_state
-- @title    Is the trace whole?
-- @summary  Events that were lost, damage, and a clock without times: whether
--   numbers can be believed.
-- @read     matters 1: so much is lost, or unknown, that no verdict is given.
-- @grain    one row
-- @filters  range
-- @column   matters INTEGER 1: no verdict
-- @column   duration_ns INTEGER length of the time of interest; NULL = its
--   clock does not tell
SELECT
  s.gaps_count, s.lost_count, s.unknown_gaps_count, s.lost_ratio,
  s.unread_count, s.lacking, s.state, s.ticks_clock, s.matters,
  CASE
    WHEN s.ticks_clock IS NULL THEN b.asked_ns
  END AS duration_ns
FROM wb_trace_state AS s
CROSS JOIN wb_bounds AS b
ORDER BY s.matters;
