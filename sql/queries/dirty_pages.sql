-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    dirty_pages
-- @title    Dirty and writeback pages over time
-- @summary  The dirty pages of the machine, those under writeback apart, and
--   what they are held against.
-- @read     dirty is what the kernel compares with its thresholds, dirty pages
--   and those under writeback together, as mean and largest of each window;
--   nr_dirty and nr_writeback are both of the window's last sample, so they
--   add up to what was there then, not to the mean. dirty_position tells the
--   place between freerun and limit.
-- @filters  window, range
-- @grain    window; order window_start_ns
-- @events   writeback:global_dirty_state
-- @column   nr_dirty_bytes INTEGER dirty page cache, last sample; NULL without
--   a sample in the window
-- @column   nr_writeback_bytes INTEGER under writeback, swap-out included, last
--   sample
-- @column   dirty_bytes INTEGER mean of dirty, under writeback and unstable
-- @column   bg_thresh_bytes INTEGER where the flusher starts
-- @column   freerun_bytes INTEGER below, no task is throttled
-- @column   setpoint_bytes INTEGER where it should settle
-- @column   thresh_bytes INTEGER dirty threshold
-- @column   limit_bytes INTEGER max(thresh, dirty_limit), where tasks stop
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @source   include/trace/events/writeback.h; mm/page-writeback.c
--   domain_dirty_limits()
SELECT
  d.window_start_ns,
  g.nr_dirty * u.page_bytes AS nr_dirty_bytes,
  g.nr_writeback * u.page_bytes AS nr_writeback_bytes,
  d.dirty_bytes, d.dirty_max_bytes, d.bg_thresh_bytes, d.freerun_bytes,
  d.setpoint_bytes, d.thresh_bytes, d.limit_bytes,
  w.lost_gaps_count
FROM wb_dirty_window AS d
CROSS JOIN wb_units AS u
JOIN wb_window AS w ON w.window_index = d.window_index
-- Of windows that have samples: the last of them.
LEFT JOIN raw_global_dirty_state AS g
  ON g.seq = w.state_last_seq AND w.state_after_seq > w.state_first_seq
ORDER BY d.window_start_ns;
