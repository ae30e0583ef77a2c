-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_sum
-- @summary  Samples of each window, weighted by the time until the next sample.
--   The sample in force at a window's start has its whole time here, the last
--   one in it has none: wb_dirty_window cuts and adds.
-- @grain    window; order window_index
-- @key      window_index
-- @needs    wb_dirty_edge, wb_dirty_sample
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   dirty_time REAL pages x ns
-- @column   dirty_max INTEGER pages, largest
-- @column   bg_thresh_time REAL pages x ns
-- @column   thresh_time REAL pages x ns
-- @column   limit_time REAL pages x ns
-- @column   above_setpoint_ns INTEGER time with dirty above the setpoint
-- @column   above_limit_ns INTEGER time with dirty above the limit
-- @column   in_range_ns INTEGER time with dirty in the control range of 2011
-- @column   drops_count INTEGER samples with a thresh a fifth and more below
--   the one before, as behind a real-time task
-- @materialize
CREATE VIEW wb_dirty_sum AS
SELECT
  e.window_index,
  total((n.ts - p.ts) * p.dirty) AS dirty_time,
  max(p.dirty) AS dirty_max,
  total((n.ts - p.ts) * p.bg_thresh) AS bg_thresh_time,
  total((n.ts - p.ts) * p.thresh) AS thresh_time,
  total((n.ts - p.ts) * p.hard_limit) AS limit_time,
  coalesce(sum(n.ts - p.ts) FILTER (WHERE p.is_above_setpoint), 0)
    AS above_setpoint_ns,
  coalesce(sum(n.ts - p.ts) FILTER (WHERE p.is_above_limit), 0)
    AS above_limit_ns,
  coalesce(sum(n.ts - p.ts) FILTER (WHERE p.is_in_range), 0) AS in_range_ns,
  count(*) FILTER (WHERE p.thresh * 10 > n.thresh * 12) AS drops_count
FROM wb_dirty_edge AS e
-- In the order of windows, so that nothing is sorted.
CROSS JOIN wb_dirty_sample AS n
  ON n.seq >= e.first_seq AND n.seq < e.after_seq
CROSS JOIN wb_dirty_sample AS p ON p.seq = n.prev_seq
GROUP BY e.window_index;
