-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_window
-- @summary  wb_dirty_state in windows: means weighted by time, and what was
--   dirtied and written in each.
-- @grain    window; order window_index
-- @needs    wb_dirty_piece, wb_window, wb_units
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   window_start_ns INTEGER trace clock
-- @column   window_ns INTEGER time of the window that samples cover
-- @column   dirty_bytes INTEGER mean
-- @column   dirty_max_bytes INTEGER largest
-- @column   position_ratio REAL mean of (dirty - freerun) / (limit - freerun)
-- @column   above_setpoint_ns INTEGER time with dirty above the setpoint
-- @column   above_limit_ns INTEGER time with dirty above the limit
-- @column   dirtied_bytes INTEGER pages dirtied
-- @column   written_bytes INTEGER pages whose writeback ended
-- @column   cached_change_bytes INTEGER change of dirty and writeback pages
-- @materialize
CREATE VIEW wb_dirty_window AS
WITH
  weighed AS (
    SELECT
      p.*,
      p.to_ts - p.from_ts AS dur,
      row_number() OVER (
        PARTITION BY p.window_index ORDER BY p.seq DESC
      ) AS from_last,
      row_number() OVER (ORDER BY p.window_index, p.seq) AS from_first
    FROM wb_dirty_piece AS p
  ),
  sums AS (
    SELECT
      w.window_index,
      sum(w.dur) AS window_ns,
      1.0 * sum(w.dirty_bytes * 1.0 * w.dur) / nullif(sum(w.dur), 0)
        AS dirty_bytes,
      max(w.dirty_bytes) AS dirty_max_bytes,
      sum(CASE WHEN w.thresh_bytes IS NOT NULL THEN w.dur END) AS plain_ns,
      sum(w.bg_thresh_bytes * 1.0 * w.dur) AS bg_thresh_sum,
      sum(w.thresh_bytes * 1.0 * w.dur) AS thresh_sum,
      sum(w.limit_bytes * 1.0 * w.dur) AS limit_sum,
      sum(w.setpoint_bytes * 1.0 * w.dur) AS setpoint_sum,
      sum(w.freerun_bytes * 1.0 * w.dur) AS freerun_sum,
      sum(
        1.0 * (w.dirty_bytes - w.freerun_bytes)
        / nullif(w.limit_bytes - w.freerun_bytes, 0) * w.dur
      ) AS position_sum,
      sum(CASE WHEN w.dirty_bytes > w.setpoint_bytes THEN w.dur ELSE 0 END)
        AS above_setpoint_ns,
      sum(CASE WHEN w.dirty_bytes > w.limit_bytes THEN w.dur ELSE 0 END)
        AS above_limit_ns,
      max(CASE WHEN w.from_last = 1 THEN w.dirtied_total_bytes END)
        AS dirtied_at_end,
      max(CASE WHEN w.from_last = 1 THEN w.written_total_bytes END)
        AS written_at_end,
      max(CASE WHEN w.from_last = 1 THEN w.nr_cached_bytes END) AS cached_at_end,
      max(CASE WHEN w.from_first = 1 THEN w.dirtied_total_bytes END)
        AS dirtied_at_start,
      max(CASE WHEN w.from_first = 1 THEN w.written_total_bytes END)
        AS written_at_start,
      max(CASE WHEN w.from_first = 1 THEN w.nr_cached_bytes END)
        AS cached_at_start
    FROM weighed AS w
    GROUP BY w.window_index
  )
SELECT
  s.window_index,
  w.window_start_ns,
  s.window_ns,
  CAST(s.dirty_bytes AS INTEGER) AS dirty_bytes,
  s.dirty_max_bytes,
  CAST(s.bg_thresh_sum / nullif(s.plain_ns, 0) AS INTEGER) AS bg_thresh_bytes,
  CAST(s.thresh_sum / nullif(s.plain_ns, 0) AS INTEGER) AS thresh_bytes,
  CAST(s.limit_sum / nullif(s.plain_ns, 0) AS INTEGER) AS limit_bytes,
  CAST(s.setpoint_sum / nullif(s.plain_ns, 0) AS INTEGER) AS setpoint_bytes,
  CAST(s.freerun_sum / nullif(s.plain_ns, 0) AS INTEGER) AS freerun_bytes,
  s.position_sum / nullif(s.plain_ns, 0) AS position_ratio,
  s.above_setpoint_ns,
  s.above_limit_ns,
  -- The first window starts from its first sample, each other one from the
  -- last sample at or before its border.
  s.dirtied_at_end - coalesce(s.dirtied_at_start, lag(s.dirtied_at_end) OVER t)
    AS dirtied_bytes,
  s.written_at_end - coalesce(s.written_at_start, lag(s.written_at_end) OVER t)
    AS written_bytes,
  s.cached_at_end - coalesce(s.cached_at_start, lag(s.cached_at_end) OVER t)
    AS cached_change_bytes
FROM sums AS s
JOIN wb_window AS w ON w.window_index = s.window_index
WINDOW t AS (ORDER BY s.window_index);
