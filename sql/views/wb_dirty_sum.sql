-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_sum
-- @summary  What changed at the samples of each window, times the time from the
--   window's start: a mean is made of it without a look at the samples that say
--   what the one before said, which most do. With x the last value, a sum over
--   time is x times the window's length, less this.
-- @grain    window with a change; order window_index
-- @key      window_index
-- @needs    wb_dirty_edge, wb_dirty_sample
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   dirty_time REAL pages x ns
-- @column   dirty_max INTEGER pages, largest
-- @column   bg_thresh_time REAL pages x ns
-- @column   thresh_time REAL pages x ns
-- @column   limit_time REAL pages x ns
-- @column   above_setpoint_ns INTEGER of dirty above the setpoint
-- @column   above_limit_ns INTEGER of dirty above the limit
-- @column   in_range_ns INTEGER of dirty in the control range of 2011
-- @column   drops_count INTEGER samples with a thresh a fifth and more below
--   the one before, as behind a real-time task
-- @materialize
CREATE VIEW wb_dirty_sum AS
SELECT
  e.window_index,
  total((n.ts - e.start_ts) * (n.dirty - p.dirty)) AS dirty_time,
  max(n.dirty) AS dirty_max,
  total((n.ts - e.start_ts) * (n.bg_thresh - p.bg_thresh)) AS bg_thresh_time,
  total((n.ts - e.start_ts) * (n.thresh - p.thresh)) AS thresh_time,
  total((n.ts - e.start_ts) * (n.hard_limit - p.hard_limit)) AS limit_time,
  sum((n.ts - e.start_ts) * (n.is_above_setpoint - p.is_above_setpoint))
    AS above_setpoint_ns,
  sum((n.ts - e.start_ts) * (n.is_above_limit - p.is_above_limit))
    AS above_limit_ns,
  sum((n.ts - e.start_ts) * (n.is_in_range - p.is_in_range)) AS in_range_ns,
  count(*) FILTER (WHERE p.thresh * 10 > n.thresh * 12) AS drops_count
FROM wb_dirty_edge AS e
-- In the order of windows, so that nothing is sorted.
CROSS JOIN wb_dirty_sample AS n
  ON n.seq >= e.first_seq AND n.seq < e.after_seq
CROSS JOIN wb_dirty_sample AS p ON p.seq = n.prev_seq
WHERE n.dirty <> p.dirty
  OR n.thresh <> p.thresh
  OR n.hard_limit <> p.hard_limit
  OR n.bg_thresh <> p.bg_thresh
GROUP BY e.window_index;
