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
    FROM _dirty_flow AS d
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

-- @view     _dirty_flow
-- @summary  What was dirtied and written in each window, from the kernel's
--   counters at the last sample of each.
-- @grain    window from the first sample on; order window_index
-- @key      window_index
-- @column   window_ns INTEGER time that dirtied_bytes and written_bytes cover:
--   from the last sample of the window that has one before to the last of this;
--   NULL without a sample
-- @column   dirtied_bytes INTEGER pages dirtied
-- @column   written_bytes INTEGER pages whose writeback ended
-- @column   cached_change_bytes INTEGER change of dirty and writeback pages
-- @column   swapped_bytes INTEGER pages that reclaim gave to a swap device,
--   which are written and under writeback, too, but nobody dirtied them; 0
--   where nothing tells of any; NULL = it is not known how many
-- @column   dirtied_bytes_per_s REAL over window_ns; NULL where that is less
--   than half a window and half a second: the kernel folds its counters each
--   second
-- @column   written_bytes_per_s REAL the same of written_bytes
-- @materialize
CREATE VIEW _dirty_flow AS
WITH
  -- What a window without a sample dirtied and wrote is not known; the next
  -- window with one has the sum, over the longer time.
  sampled AS (
    SELECT
      w.window_index, w.state_first_seq, w.state_before_seq, l.ts, l.nr_dirtied,
      l.nr_written,
      l.nr_dirty + l.nr_writeback AS nr_cached,
      w.state_last_seq AS last_seq
    FROM wb_window AS w
    CROSS JOIN raw_global_dirty_state AS l ON l.seq = w.state_last_seq
    WHERE w.state_after_seq > w.state_first_seq
  ),
  -- The first window counts from the sample that was in force at its start, or
  -- else from its first.
  origin AS (
    SELECT
      g.ts, g.nr_dirtied, g.nr_written,
      g.nr_dirty + g.nr_writeback AS nr_cached,
      g.seq
    FROM (SELECT min(f.window_index) AS window_index FROM sampled AS f) AS m
    JOIN sampled AS s ON s.window_index = m.window_index
    CROSS JOIN raw_global_dirty_state AS g
      ON g.seq = coalesce(s.state_before_seq, s.state_first_seq)
  ),
  stepped AS (
    SELECT
      s.window_index,
      s.ts - coalesce(lag(s.ts) OVER t, o.ts) AS window_ns,
      s.nr_dirtied - coalesce(lag(s.nr_dirtied) OVER t, o.nr_dirtied)
        AS dirtied,
      s.nr_written - coalesce(lag(s.nr_written) OVER t, o.nr_written)
        AS written,
      s.nr_cached - coalesce(lag(s.nr_cached) OVER t, o.nr_cached)
        AS cached_change,
      coalesce(lag(s.last_seq) OVER t, o.seq) AS from_seq,
      s.last_seq
    FROM sampled AS s
    CROSS JOIN origin AS o
    WINDOW t AS (ORDER BY s.window_index)
  ),
  counted AS (
    SELECT
      s.*,
      (
        SELECT count(*)
        FROM raw_mm_vmscan_write_folio AS w
        WHERE w.seq > s.from_seq
          AND w.seq <= s.last_seq
          AND w.reclaim_flags & 3 = 1
      ) AS swap_writes
    FROM stepped AS s
  )
SELECT
  w.window_index, w.window_start_ns, s.window_ns,
  s.dirtied * u.page_bytes AS dirtied_bytes,
  s.written * u.page_bytes AS written_bytes,
  s.cached_change * u.page_bytes AS cached_change_bytes,
  CASE
    WHEN s.swap_writes > 0
      THEN CAST(s.swap_writes * k.pages_per_event AS INTEGER) * u.page_bytes
    WHEN s.swap_writes = 0 AND (k.has_events = 1 OR k.is_told = 0) THEN 0
  END AS swapped_bytes,
  CASE
    WHEN s.window_ns * 2 >= r.window_ns OR s.window_ns * 2 >= u.second_ns
      THEN 1.0 * s.dirtied * u.page_bytes * u.second_ns / s.window_ns
  END AS dirtied_bytes_per_s,
  CASE
    WHEN s.window_ns * 2 >= r.window_ns OR s.window_ns * 2 >= u.second_ns
      THEN 1.0 * s.written * u.page_bytes * u.second_ns / s.window_ns
  END AS written_bytes_per_s
FROM wb_window AS w
CROSS JOIN wb_params AS r
CROSS JOIN wb_units AS u
CROSS JOIN _swap_known AS k
LEFT JOIN counted AS s ON s.window_index = w.window_index
WHERE w.state_before_seq IS NOT NULL
  OR w.state_after_seq > w.state_first_seq;

-- @view     _swap_known
-- @summary  Whether the trace tells what reclaim gave to swap devices. Of a run
--   in which much of it was zero-filled or went to zswap nobody knows when.
-- @grain    one row
-- @column   has_events INTEGER 1: the events of reclaim's writes were recorded
-- @column   is_told INTEGER 1: /proc/vmstat tells of pages for a swap device
-- @column   pages_per_event REAL pages that reached the swap device for each
--   event of an anon folio; NULL = not known
-- @materialize
CREATE VIEW _swap_known AS
WITH
  recorded AS (
    SELECT
      EXISTS (
        SELECT 1
        FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio', 'vmscan:mm_vmscan_writepage'
        )
      ) AS has_events
  )
SELECT
  r.has_events,
  CASE WHEN d.device_count > 0 THEN 1 ELSE 0 END AS is_told,
  CASE
    WHEN r.has_events
      AND d.device_count BETWEEN v.reached_least_ratio * d.anon_count
        AND d.anon_count
      THEN 1.0 * d.device_count / d.anon_count
        * d.pages_per_events_num / d.pages_per_events_den
  END AS pages_per_event
FROM recorded AS r
CROSS JOIN reclaim_run AS d
CROSS JOIN wb_rule AS v;
