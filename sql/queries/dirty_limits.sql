-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    dirty_limits
-- @title    Dirty limits and the settings behind them
-- @summary  The machine's dirty thresholds, what was dirty at most, and the
--   settings of vm.dirty_* when the recording began.
-- @read     thresh is where writers are stopped in the end, bg_thresh where the
--   flusher starts. Of a pair of bytes and ratio the one that is in force has a
--   value; none: the folder has no file sysctls.
-- @warns    _limit_warning
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
  s.dirty_bytes AS vm_dirty_bytes,
  s.dirty_ratio AS vm_dirty_percent,
  s.dirty_background_bytes AS vm_dirty_background_bytes,
  s.dirty_background_ratio AS vm_dirty_background_percent
FROM wb_dirty_extent AS e
CROSS JOIN wb_dirty_setting AS s
ORDER BY e.thresh_bytes;

-- @view     _limit_warning
-- @summary  What the reader of a threshold must know.
-- @grain    warning; order slug
-- @optional writeback:global_dirty_state
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW _limit_warning AS
WITH
  told AS (
    SELECT
      round(1.0 * c.from_pages * u.page_bytes / u.kib_bytes / u.kib_bytes, 1)
        || ' to '
        || round(1.0 * c.to_pages * u.page_bytes / u.kib_bytes / u.kib_bytes, 1)
        || ' MiB after ' || round(1.0 * (c.ts - b.first_ts) / u.second_ns, 1)
        || ' s' AS text,
      row_number() OVER (ORDER BY c.seq) AS place
    FROM wb_limit_change AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_units AS u
    WHERE in_time!(c.ts, b)
    ORDER BY c.seq
  )
SELECT
  'limit-changed' AS slug,
  'the dirty limit changed in the run, from '
    || group_concat(CASE WHEN t.place <= 3 THEN t.text END, ', from ')
    || CASE
      WHEN count(*) > 3 THEN ' and ' || (count(*) - 3) || ' more'
      ELSE ''
    END
    || ' (somebody set vm.dirty_*, or much memory came free): thresholds are'
    || ' means since the last change' AS message
FROM told AS t
HAVING count(*) > 0;
