-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    redirty_gap
-- @title    Gap between pages dirtied and pages written
-- @order    32
-- @summary  How far the pages written lag behind the pages dirtied, over time.
-- @read     gap is what was dirtied and not written since the trace began. It
--   should be what the dirty pages grew by; unexplained_gap is the rest. When
--   that grows and grows, a file system redirties pages that the flusher gives
--   it (ext4 in 2011), or files are deleted before they are written. Since
--   3.2 the kernel takes redirtied pages off again. Below 0: swap was
--   written, which nobody dirtied.
-- @filters  window, range
-- @grain    window; order window_start_ns
-- @events   writeback:global_dirty_state
-- @column   dirtied_so_far_bytes INTEGER from the last sample before the start
--   (or the first one) to the last sample of the window
-- @column   written_so_far_bytes INTEGER the same of pages written
-- @column   gap_bytes INTEGER dirtied_so_far - written_so_far
-- @column   dirty_growth_bytes INTEGER what dirty and writeback pages grew by
-- @column   unexplained_gap_bytes INTEGER gap - dirty_growth
-- @column   dirtied_to_written_ratio REAL dirtied / written in this window;
--   NULL when nothing was written
-- @metric   unexplained_gap_bytes lower: data that programs wrote to memory,
--   that waits there no more and never went to a disk: deleted before; when it
--   rises and rises, a file system that counts the same data again and again
-- @source   seen in the graphs global_dirtied_written.png of 2011-03-01
WITH
  summed AS (
    SELECT
      d.window_start_ns, d.dirtied_bytes, d.written_bytes, d.lost_gaps_count,
      w.state_first_seq, w.state_before_seq,
      l.nr_dirty + l.nr_writeback AS nr_cached,
      sum(d.dirtied_bytes) OVER so_far AS dirtied_so_far,
      sum(d.written_bytes) OVER so_far AS written_so_far
    FROM throughput AS d
    JOIN wb_window AS w ON w.window_start_ns = d.window_start_ns
    JOIN raw_global_dirty_state AS l ON l.seq = w.state_last_seq
    WHERE d.dirtied_bytes IS NOT NULL
    WINDOW so_far AS (ORDER BY d.window_start_ns ROWS UNBOUNDED PRECEDING)
  ),
  -- The sample that was in force at the start, or else the first.
  origin AS (
    SELECT g.nr_dirty + g.nr_writeback AS nr_cached
    FROM (SELECT min(f.window_start_ns) AS ts FROM summed AS f) AS m
    JOIN summed AS s ON s.window_start_ns = m.ts
    JOIN raw_global_dirty_state AS g
      ON g.seq = coalesce(s.state_before_seq, s.state_first_seq)
  )
SELECT
  s.window_start_ns,
  s.dirtied_so_far AS dirtied_so_far_bytes,
  s.written_so_far AS written_so_far_bytes,
  s.dirtied_so_far - s.written_so_far AS gap_bytes,
  (s.nr_cached - o.nr_cached) * u.page_bytes AS dirty_growth_bytes,
  s.dirtied_so_far - s.written_so_far
    - (s.nr_cached - o.nr_cached) * u.page_bytes AS unexplained_gap_bytes,
  1.0 * s.dirtied_bytes / nullif(s.written_bytes, 0)
    AS dirtied_to_written_ratio,
  s.lost_gaps_count
FROM summed AS s
CROSS JOIN origin AS o
CROSS JOIN wb_units AS u
ORDER BY s.window_start_ns;
