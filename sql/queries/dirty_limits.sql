-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    dirty_limits
-- @title    Dirty limits and the settings behind them
-- @summary  The machine's dirty thresholds, what was dirty at most, and the
--   settings of vm.dirty_* when the recording began.
-- @read     thresh is where writers are stopped in the end, bg_thresh where the
--   flusher starts. Of a pair of bytes and ratio the one that is in force has a
--   value; none: the folder has no file sysctls.
-- @filters  range
-- @grain    one row
-- @events   writeback:global_dirty_state
-- @column   thresh_bytes INTEGER mean over time of the dirty threshold, since
--   somebody last changed it (query limit_changes)
-- @column   bg_thresh_bytes INTEGER mean over time of where the flusher starts,
--   since then
-- @column   limit_max_bytes INTEGER highest hard limit
-- @column   vm_dirty_bytes INTEGER vm.dirty_bytes; NULL = not set, or not known
-- @column   vm_dirty_percent INTEGER vm.dirty_ratio; NULL likewise
-- @column   vm_dirty_background_bytes INTEGER vm.dirty_background_bytes; NULL
--   likewise
-- @column   vm_dirty_background_percent INTEGER vm.dirty_background_ratio; NULL
--   likewise
-- @metric   dirty_max_bytes neutral: most data that waited in memory for disks
-- @source   mm/page-writeback.c domain_dirty_limits()
SELECT
  e.thresh_bytes, e.bg_thresh_bytes, e.limit_max_bytes, e.dirty_max_bytes,
  u.dirty_bytes AS vm_dirty_bytes,
  u.dirty_ratio AS vm_dirty_percent,
  u.dirty_background_bytes AS vm_dirty_background_bytes,
  u.dirty_background_ratio AS vm_dirty_background_percent
FROM wb_dirty_extent AS e
CROSS JOIN wb_units AS u
ORDER BY e.thresh_bytes;
