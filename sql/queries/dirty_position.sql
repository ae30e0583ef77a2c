-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    dirty_position
-- @title    Dirty pages against their thresholds
-- @order    40
-- @summary  Where the dirty pages stood between free run and the hard limit.
-- @read     position_ratio: below 0 nobody is throttled, 50 % is the setpoint,
--   100 % the limit, where tasks stop. Values are means over each window;
--   windows in which the event did not fire are empty.
-- @filters  window, range
-- @grain    window; order window_start_ns
-- @events   writeback:global_dirty_state
-- @column   dirty_bytes INTEGER mean of dirty, under writeback and unstable
-- @column   setpoint_bytes INTEGER where it should settle
-- @column   limit_bytes INTEGER max(thresh, dirty_limit)
-- @column   thresh_bytes INTEGER dirty threshold
-- @column   bg_thresh_bytes INTEGER where the flusher starts
-- @column   freerun_bytes INTEGER below, no task is throttled
-- @column   position_ratio REAL place between freerun and limit
-- @column   above_setpoint_ns INTEGER time above the setpoint
-- @column   above_limit_ns INTEGER time above the limit
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   above_limit_ns lower: time in which more data waited in memory for
--   disks than the kernel allows, so that every program that writes had to stop
-- @metric   position_ratio neutral: how full memory is with data that waits for
--   disks: below 0 % no task is throttled, 50 % is what the kernel aims at, 100
--   % is the limit
SELECT
  d.window_start_ns, d.dirty_bytes, d.dirty_max_bytes, d.setpoint_bytes,
  d.limit_bytes, d.thresh_bytes, d.bg_thresh_bytes, d.freerun_bytes,
  d.position_ratio, d.above_setpoint_ns, d.above_limit_ns,
  w.lost_gaps_count
FROM wb_dirty_window AS d
JOIN wb_window AS w ON w.window_index = d.window_index
ORDER BY d.window_start_ns;
