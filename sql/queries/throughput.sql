-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    throughput
-- @title    Pages dirtied and written
-- @order    30
-- @summary  What the whole machine dirtied and wrote, from the kernel's
--   counters.
-- @read     written_bytes_per_s is the throughput that counts; redirty_ratio is
--   the share of dirtied pages that were neither written nor are dirty still
--   (deleted or dirtied twice). Pages written to swap, which nobody dirtied,
--   are left out of it; it is empty where they cannot be told apart.
-- @filters  window, range
-- @grain    window; order window_start_ns
-- @events   writeback:global_dirty_state
-- @column   window_ns INTEGER time that the bytes cover: from the last sample
--   of the window before (of an earlier one, where windows are empty) to the
--   last of this
-- @column   dirtied_bytes INTEGER page cache newly dirtied
-- @column   written_bytes INTEGER pages whose writeback ended, swap included
-- @column   redirty_ratio REAL (dirtied - written + swapped out - growth of
--   dirty) / dirtied; 0 where that is below 0 by what counters lag
--   (wb_rule.counter_lag_pages); NULL where more was written than the page
--   cache can account for, and where the pages swapped out are not known
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost;
--   the kernel's counters outlive them
-- @metric   written_bytes_per_s higher: how fast data reached the disks
-- @metric   redirty_ratio lower: share of the data written to memory that
--   neither went to a disk nor waits there still: deleted before, or counted
--   again and again
WITH
  balance AS (
    SELECT
      d.window_index, d.window_start_ns, d.window_ns, d.dirtied_bytes,
      d.written_bytes, d.dirtied_bytes_per_s, d.written_bytes_per_s,
      d.dirtied_bytes - d.written_bytes + d.swapped_bytes
        - d.cached_change_bytes AS vanished_bytes
    FROM wb_dirty_flow AS d
  )
SELECT
  d.window_start_ns, d.window_ns, d.dirtied_bytes, d.written_bytes,
  d.dirtied_bytes_per_s, d.written_bytes_per_s,
  CASE
    WHEN d.vanished_bytes >= -v.counter_lag_pages * u.page_bytes
      THEN 1.0 * max(d.vanished_bytes, 0) / nullif(d.dirtied_bytes, 0)
  END AS redirty_ratio,
  w.lost_gaps_count
FROM balance AS d
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
JOIN wb_window AS w ON w.window_index = d.window_index
ORDER BY d.window_start_ns;
