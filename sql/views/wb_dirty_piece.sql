-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_piece
-- @summary  wb_dirty_state cut at the borders of windows.
-- @grain    piece of a row within one window; order from_ts
-- @needs    wb_dirty_state, wb_bounds, wb_params
-- @events   writeback:global_dirty_state
-- @column   seq INTEGER of the row that was cut
-- @column   sample_ts INTEGER ns, of the row that was cut
-- @column   is_sample INTEGER 1: the event fired in this window; 0: carried
--   into it
-- @column   window_index INTEGER of wb_window
-- @column   from_ts INTEGER ns, start of the piece
-- @column   to_ts INTEGER ns, end of the piece
-- @column   dirty_bytes INTEGER as in wb_dirty_state
-- @column   bg_thresh_bytes INTEGER as in wb_dirty_state
-- @column   thresh_bytes INTEGER as in wb_dirty_state
-- @column   limit_bytes INTEGER as in wb_dirty_state
-- @column   freerun_bytes INTEGER as in wb_dirty_state
-- @column   setpoint_bytes INTEGER as in wb_dirty_state
-- @column   dirtied_total_bytes INTEGER as in wb_dirty_state
-- @column   written_total_bytes INTEGER as in wb_dirty_state
-- @column   nr_cached_bytes INTEGER dirty and under writeback, without unstable
-- @materialize
CREATE VIEW wb_dirty_piece AS
WITH RECURSIVE
  grid AS (
    SELECT b.start_ts, b.end_ts, p.window_ns
    FROM wb_bounds AS b
    CROSS JOIN wb_params AS p
  ),
  clipped AS (
    SELECT
      CASE WHEN d.ts < g.start_ts THEN g.start_ts ELSE d.ts END AS from_ts,
      CASE WHEN d.until_ts > g.end_ts THEN g.end_ts ELSE d.until_ts END
        AS to_ts,
      d.*
    FROM wb_dirty_state AS d
    CROSS JOIN grid AS g
    WHERE d.until_ts >= g.start_ts AND d.ts < g.end_ts
  ),
  piece(
    seq, sample_ts, is_sample, window_index, from_ts, to_ts, dirty_bytes,
    bg_thresh_bytes, thresh_bytes, limit_bytes, freerun_bytes, setpoint_bytes,
    dirtied_total_bytes, written_total_bytes, nr_cached_bytes
  ) AS (
    SELECT
      c.seq,
      c.ts,
      CASE WHEN c.ts >= g.start_ts THEN 1 ELSE 0 END,
      (c.from_ts - g.start_ts) / g.window_ns,
      c.from_ts,
      c.to_ts,
      c.dirty_bytes,
      c.bg_thresh_bytes,
      c.thresh_bytes,
      c.limit_bytes,
      c.freerun_bytes,
      c.setpoint_bytes,
      c.dirtied_total_bytes,
      c.written_total_bytes,
      c.nr_dirty_bytes + c.nr_writeback_bytes
    FROM clipped AS c
    CROSS JOIN grid AS g
    UNION ALL
    SELECT
      p.seq,
      p.sample_ts,
      0,
      p.window_index + 1,
      g.start_ts + (p.window_index + 1) * g.window_ns,
      p.to_ts,
      p.dirty_bytes,
      p.bg_thresh_bytes,
      p.thresh_bytes,
      p.limit_bytes,
      p.freerun_bytes,
      p.setpoint_bytes,
      p.dirtied_total_bytes,
      p.written_total_bytes,
      p.nr_cached_bytes
    FROM piece AS p
    CROSS JOIN grid AS g
    WHERE p.to_ts > g.start_ts + (p.window_index + 1) * g.window_ns
  )
SELECT
  p.seq,
  p.sample_ts,
  p.is_sample,
  p.window_index,
  p.from_ts,
  CASE
    WHEN p.to_ts > g.start_ts + (p.window_index + 1) * g.window_ns
      THEN g.start_ts + (p.window_index + 1) * g.window_ns
    ELSE p.to_ts
  END AS to_ts,
  p.dirty_bytes,
  p.bg_thresh_bytes,
  p.thresh_bytes,
  p.limit_bytes,
  p.freerun_bytes,
  p.setpoint_bytes,
  p.dirtied_total_bytes,
  p.written_total_bytes,
  p.nr_cached_bytes
FROM piece AS p
CROSS JOIN grid AS g;
