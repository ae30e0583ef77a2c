-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    limit_changes
-- @title    Changes of the dirty limit
-- @summary  When somebody changed the machine's dirty threshold, from what to
--   what, and how long it took until no more was dirty than that.
-- @read     vm.dirty_bytes or a ratio was set; a threshold that rises may also
--   be one that much memory came free for. Where less is let be dirty than is,
--   every writer waits until the disks have written the difference (drain_ns).
-- @filters  range
-- @grain    change; order ts
-- @keys     ts
-- @events   writeback:global_dirty_state
-- @column   after_ns INTEGER the same, from the start of the trace
-- @column   from_bytes INTEGER dirty threshold before
-- @column   to_bytes INTEGER dirty threshold behind
-- @column   low_bytes INTEGER the lower one of the two
-- @column   high_bytes INTEGER the higher one
-- @column   dirty_bytes INTEGER dirty and under writeback then
-- @column   drain_ns INTEGER until no more than the limit was dirty; NULL =
--   no more was
-- @source   mm/page-writeback.c dirty_bytes_handler()
SELECT
  c.ts,
  c.ts - b.first_ts AS after_ns,
  c.from_pages * u.page_bytes AS from_bytes,
  c.to_pages * u.page_bytes AS to_bytes,
  min(c.from_pages, c.to_pages) * u.page_bytes AS low_bytes,
  max(c.from_pages, c.to_pages) * u.page_bytes AS high_bytes,
  c.dirty_pages * u.page_bytes AS dirty_bytes,
  c.drained_ts - c.ts AS drain_ns
FROM wb_limit_change AS c
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
WHERE in_time!(c.ts, b)
ORDER BY c.ts, c.seq;
