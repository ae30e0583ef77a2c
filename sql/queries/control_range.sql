-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    control_range
-- @title    Dirty pages against the control range
-- @order    42
-- @summary  Did the dirty pages stay in the range of 2011, and at the setpoint?
-- @read     The patches of 2011 let dirty pages float in (thresh - thresh/4,
--   thresh) around the target thresh - thresh/8: range_position is 0 % at its
--   foot, 50 % at the target, 100 % at thresh. The kernel of today throttles
--   from freerun to limit around the setpoint; both ranges are the same when
--   bg_thresh is half of thresh, as by default. The nearer the errors are to
--   0 %, the smoother writers run.
-- @filters  window, range
-- @grain    window; order window_start_ns
-- @events   writeback:global_dirty_state
-- @column   dirty_bytes INTEGER mean of dirty, under writeback and unstable
-- @column   range_low_bytes INTEGER thresh - thresh/4, mean
-- @column   range_target_bytes INTEGER thresh - thresh/8, mean
-- @column   range_position_ratio REAL place in that range; 0.5 = target
-- @column   range_error_ratio REAL (dirty - target) / target
-- @column   in_range_ratio REAL share of the time with dirty in that range
-- @column   setpoint_bytes INTEGER today's target, mean
-- @column   position_ratio REAL place between freerun and limit; 0.5 = setpoint
-- @column   setpoint_error_ratio REAL (dirty - setpoint) / setpoint
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   in_range_ratio higher: share of the time in which the data that
--   waited in memory for disks was within the range that the kernel of 2011
--   aimed at; outside it, programs stop and go
-- @metric   range_error_ratio neutral: how far that data was from the target of
--   2011: above 0 % there was too much of it; below, tasks were throttled more
--   than needed, or wrote little
-- @metric   setpoint_error_ratio neutral: the same against the target that the
--   kernel has today
-- @source   IO-less dirty throttling V6, 2011-02; mm/page-writeback.c
SELECT
  d.window_start_ns, d.dirty_bytes,
  d.thresh_bytes - d.thresh_bytes / 4 AS range_low_bytes,
  d.thresh_bytes - d.thresh_bytes / 8 AS range_target_bytes,
  d.thresh_bytes, d.range_position_ratio,
  1.0 * (d.dirty_bytes - (d.thresh_bytes - d.thresh_bytes / 8))
    / nullif(d.thresh_bytes - d.thresh_bytes / 8, 0) AS range_error_ratio,
  1.0 * d.in_range_ns / nullif(d.plain_ns, 0) AS in_range_ratio,
  d.setpoint_bytes, d.position_ratio,
  1.0 * (d.dirty_bytes - d.setpoint_bytes) / nullif(d.setpoint_bytes, 0)
    AS setpoint_error_ratio,
  w.lost_gaps_count
FROM wb_dirty_window AS d
JOIN wb_window AS w ON w.window_index = d.window_index
ORDER BY d.window_start_ns;
