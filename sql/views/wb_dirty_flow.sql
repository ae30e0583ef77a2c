-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_flow
-- @summary  What was dirtied and written in each window, from the kernel's
--   counters at the last sample of each.
-- @grain    window from the first sample on; order window_index
-- @key      window_index
-- @needs    raw_global_dirty_state, wb_dirty_edge, wb_params, wb_units
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   window_start_ns INTEGER trace clock
-- @column   window_ns INTEGER time that dirtied_bytes and written_bytes cover:
--   from the last sample of the window that has one before to the last of this;
--   NULL without a sample
-- @column   dirtied_bytes INTEGER pages dirtied
-- @column   written_bytes INTEGER pages whose writeback ended
-- @column   cached_change_bytes INTEGER change of dirty and writeback pages
-- @column   dirtied_bytes_per_s REAL over window_ns; NULL where that is less
--   than half a window and half a second: the kernel folds its counters each
--   second
-- @column   written_bytes_per_s REAL the same of written_bytes
-- @materialize
CREATE VIEW wb_dirty_flow AS
WITH
  -- What a window without a sample dirtied and wrote is not known; the next
  -- window with one has the sum, over the longer time.
  sampled AS (
    SELECT
      e.window_index,
      e.carried_seq,
      e.first_seq,
      l.ts,
      l.nr_dirtied,
      l.nr_written,
      l.nr_dirty + l.nr_writeback AS nr_cached
    FROM wb_dirty_edge AS e
    CROSS JOIN raw_global_dirty_state AS l ON l.seq = e.last_seq
    WHERE e.after_seq > e.first_seq
  ),
  -- The first window counts from the sample that was in force at its start, or
  -- else from its first.
  origin AS (
    SELECT
      g.ts,
      g.nr_dirtied,
      g.nr_written,
      g.nr_dirty + g.nr_writeback AS nr_cached
    FROM (SELECT min(f.window_index) AS window_index FROM sampled AS f) AS m
    JOIN sampled AS s ON s.window_index = m.window_index
    CROSS JOIN raw_global_dirty_state AS g
      ON g.seq = coalesce(s.carried_seq, s.first_seq)
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
        AS cached_change
    FROM sampled AS s
    CROSS JOIN origin AS o
    WINDOW t AS (ORDER BY s.window_index)
  )
SELECT
  e.window_index,
  e.start_ts AS window_start_ns,
  s.window_ns,
  s.dirtied * u.page_bytes AS dirtied_bytes,
  s.written * u.page_bytes AS written_bytes,
  s.cached_change * u.page_bytes AS cached_change_bytes,
  CASE
    WHEN s.window_ns * 2 >= r.window_ns OR s.window_ns * 2 >= u.second_ns
      THEN 1.0 * s.dirtied * u.page_bytes * u.second_ns / s.window_ns
  END AS dirtied_bytes_per_s,
  CASE
    WHEN s.window_ns * 2 >= r.window_ns OR s.window_ns * 2 >= u.second_ns
      THEN 1.0 * s.written * u.page_bytes * u.second_ns / s.window_ns
  END AS written_bytes_per_s
FROM wb_dirty_edge AS e
CROSS JOIN wb_params AS r
CROSS JOIN wb_units AS u
LEFT JOIN stepped AS s ON s.window_index = e.window_index
WHERE e.carried_seq IS NOT NULL OR e.after_seq > e.first_seq;
