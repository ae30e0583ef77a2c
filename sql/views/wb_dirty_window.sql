-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_window
-- @summary  wb_dirty_state in windows: means weighted by time, and what was
--   dirtied and written in each.
-- @grain    window; order window_index
-- @needs    wb_dirty_piece, wb_window
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   window_start_ns INTEGER trace clock
-- @column   window_ns INTEGER time that dirtied_bytes and written_bytes cover:
--   the window, and those without samples before it; NULL without a sample
-- @column   dirty_bytes INTEGER mean; NULL without a sample in the window
-- @column   dirty_max_bytes INTEGER largest
-- @column   bg_thresh_bytes INTEGER mean
-- @column   thresh_bytes INTEGER mean
-- @column   limit_bytes INTEGER mean
-- @column   setpoint_bytes INTEGER mean
-- @column   freerun_bytes INTEGER mean
-- @column   position_ratio REAL mean of (dirty - freerun) / (limit - freerun)
-- @column   range_position_ratio REAL mean of (dirty - (thresh - thresh/4)) /
--   (thresh/4), the control range of 2011
-- @column   in_range_ns INTEGER time with dirty in the control range of 2011
-- @column   plain_ns INTEGER time with thresholds that are not boosted
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
      max(w.is_sample) AS has_sample,
      max(w.to_ts) AS covered_to_ts,
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
      sum(
        1.0 * (w.dirty_bytes - (w.thresh_bytes - w.thresh_bytes / 4))
        / nullif(w.thresh_bytes / 4, 0) * w.dur
      ) AS range_position_sum,
      sum(
        CASE
          WHEN w.dirty_bytes BETWEEN w.thresh_bytes - w.thresh_bytes / 4
            AND w.thresh_bytes
            THEN w.dur
          ELSE 0
        END
      ) AS in_range_ns,
      sum(CASE WHEN w.dirty_bytes > w.setpoint_bytes THEN w.dur ELSE 0 END)
        AS above_setpoint_ns,
      sum(CASE WHEN w.dirty_bytes > w.limit_bytes THEN w.dur ELSE 0 END)
        AS above_limit_ns,
      max(CASE WHEN w.from_last = 1 THEN w.dirtied_total_bytes END)
        AS dirtied_at_end,
      max(CASE WHEN w.from_last = 1 THEN w.written_total_bytes END)
        AS written_at_end,
      max(CASE WHEN w.from_last = 1 THEN w.nr_cached_bytes END) AS cached_at_end
    FROM weighed AS w
    GROUP BY w.window_index
  ),
  -- What a window without a sample dirtied and wrote is not known; the next
  -- window with one has the sum, over the longer time. The first window counts
  -- from the sample that was in force at its start, or else from its first.
  origin AS (
    SELECT
      w.sample_ts,
      w.dirtied_total_bytes,
      w.written_total_bytes,
      w.nr_cached_bytes
    FROM weighed AS w
    WHERE w.from_first = 1
  ),
  sampled AS (
    SELECT
      s.window_index,
      s.covered_to_ts - coalesce(lag(s.covered_to_ts) OVER t, o.sample_ts)
        AS window_ns,
      s.dirtied_at_end
        - coalesce(lag(s.dirtied_at_end) OVER t, o.dirtied_total_bytes)
        AS dirtied_bytes,
      s.written_at_end
        - coalesce(lag(s.written_at_end) OVER t, o.written_total_bytes)
        AS written_bytes,
      s.cached_at_end
        - coalesce(lag(s.cached_at_end) OVER t, o.nr_cached_bytes)
        AS cached_change_bytes
    FROM sums AS s
    CROSS JOIN origin AS o
    WHERE s.has_sample = 1
    WINDOW t AS (ORDER BY s.window_index)
  ),
  -- Means of carried values say nothing about a window without a sample.
  known AS (
    SELECT
      s.window_index,
      s.dirty_bytes,
      s.dirty_max_bytes,
      s.bg_thresh_sum / nullif(s.plain_ns, 0) AS bg_thresh_bytes,
      s.thresh_sum / nullif(s.plain_ns, 0) AS thresh_bytes,
      s.limit_sum / nullif(s.plain_ns, 0) AS limit_bytes,
      s.setpoint_sum / nullif(s.plain_ns, 0) AS setpoint_bytes,
      s.freerun_sum / nullif(s.plain_ns, 0) AS freerun_bytes,
      s.position_sum / nullif(s.plain_ns, 0) AS position_ratio,
      s.range_position_sum / nullif(s.plain_ns, 0) AS range_position_ratio,
      CASE WHEN s.plain_ns > 0 THEN s.in_range_ns END AS in_range_ns,
      s.plain_ns,
      s.above_setpoint_ns,
      s.above_limit_ns
    FROM sums AS s
    WHERE s.has_sample = 1
  )
SELECT
  s.window_index,
  w.window_start_ns,
  n.window_ns,
  CAST(k.dirty_bytes AS INTEGER) AS dirty_bytes,
  k.dirty_max_bytes,
  CAST(k.bg_thresh_bytes AS INTEGER) AS bg_thresh_bytes,
  CAST(k.thresh_bytes AS INTEGER) AS thresh_bytes,
  CAST(k.limit_bytes AS INTEGER) AS limit_bytes,
  CAST(k.setpoint_bytes AS INTEGER) AS setpoint_bytes,
  CAST(k.freerun_bytes AS INTEGER) AS freerun_bytes,
  k.position_ratio,
  k.range_position_ratio,
  k.in_range_ns,
  k.plain_ns,
  k.above_setpoint_ns,
  k.above_limit_ns,
  n.dirtied_bytes,
  n.written_bytes,
  n.cached_change_bytes
FROM sums AS s
JOIN wb_window AS w ON w.window_index = s.window_index
LEFT JOIN sampled AS n ON n.window_index = s.window_index
LEFT JOIN known AS k ON k.window_index = s.window_index;
