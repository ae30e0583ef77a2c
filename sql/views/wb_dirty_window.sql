-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_window
-- @summary  Dirty pages and their thresholds in windows: means weighted by
--   time, each sample holding until the next.
-- @grain    window from the first sample on; order window_index
-- @key      window_index
-- @needs    wb_dirty_edge, wb_dirty_sample, wb_dirty_sum, wb_dirty_boost,
--   wb_units
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   window_start_ns INTEGER trace clock
-- @column   dirty_bytes INTEGER mean; NULL without a sample in the window
-- @column   dirty_max_bytes INTEGER largest
-- @column   bg_thresh_bytes INTEGER mean
-- @column   thresh_bytes INTEGER mean
-- @column   limit_bytes INTEGER mean
-- @column   setpoint_bytes INTEGER mean
-- @column   freerun_bytes INTEGER mean
-- @column   position_ratio REAL (dirty - freerun) / (limit - freerun), of the
--   time with plain thresholds
-- @column   range_position_ratio REAL (dirty - (thresh - thresh/4)) /
--   (thresh/4), the control range of 2011
-- @column   in_range_ns INTEGER time with dirty in the control range of 2011
-- @column   plain_ns INTEGER time with thresholds that are not boosted
-- @column   above_setpoint_ns INTEGER time with dirty above the setpoint
-- @column   above_limit_ns INTEGER time with dirty above the limit
-- @materialize
CREATE VIEW wb_dirty_window AS
WITH
  -- Means of carried values say nothing about a window without a sample.
  sampled AS (
    SELECT
      e.window_index,
      coalesce(e.carried_seq, e.first_seq) AS from_seq,
      e.last_seq,
      e.start_ts,
      CASE WHEN e.carried_seq IS NULL THEN f.ts ELSE e.start_ts END AS from_ts,
      e.end_ts AS to_ts
    FROM wb_dirty_edge AS e
    CROSS JOIN wb_dirty_sample AS f ON f.seq = e.first_seq
    WHERE e.after_seq > e.first_seq
  ),
  -- As if the last sample had held from the start on; wb_dirty_sum takes what
  -- is too much.
  border AS (
    SELECT s.window_index, s.last_seq AS seq, s.to_ts - s.start_ts AS dur
    FROM sampled AS s
    UNION ALL
    -- Nothing is known before the first sample.
    SELECT s.window_index, s.from_seq, s.start_ts - s.from_ts
    FROM sampled AS s
  ),
  -- Samples of real-time tasks tell nothing of the thresholds of others.
  boost AS (
    SELECT
      b.seq,
      p.ts,
      (
        SELECT n.ts
        FROM wb_dirty_sample AS n
        WHERE n.seq > b.seq
        ORDER BY n.seq
        LIMIT 1
      ) AS until_ts
    FROM wb_dirty_boost AS b
    CROSS JOIN wb_dirty_sample AS p ON p.seq = b.seq
  ),
  boost_part AS (
    SELECT
      s.window_index,
      b.seq,
      CASE WHEN b.until_ts < s.to_ts THEN b.until_ts ELSE s.to_ts END
        - CASE WHEN b.ts < s.from_ts THEN s.from_ts ELSE b.ts END AS dur
    FROM boost AS b
    JOIN sampled AS s
      ON s.to_ts > b.ts AND (b.until_ts IS NULL OR s.from_ts < b.until_ts)
  ),
  part AS (
    SELECT
      t.window_index,
      -t.dirty_time AS dirty_time,
      0.0 AS boosted_dirty_time,
      t.dirty_max,
      0 AS boosted_ns,
      -t.bg_thresh_time AS bg_thresh_time,
      -t.thresh_time AS thresh_time,
      -t.limit_time AS limit_time,
      -t.above_setpoint_ns AS above_setpoint_ns,
      -t.above_limit_ns AS above_limit_ns,
      -t.in_range_ns AS in_range_ns
    FROM wb_dirty_sum AS t
    UNION ALL
    SELECT
      b.window_index,
      1.0 * b.dur * s.dirty,
      0.0,
      s.dirty,
      0,
      1.0 * b.dur * s.bg_thresh,
      1.0 * b.dur * s.thresh,
      1.0 * b.dur * s.hard_limit,
      b.dur * s.is_above_setpoint,
      b.dur * s.is_above_limit,
      b.dur * s.is_in_range
    FROM border AS b
    CROSS JOIN wb_dirty_sample AS s ON s.seq = b.seq
    UNION ALL
    SELECT
      b.window_index,
      0.0,
      1.0 * b.dur * s.dirty,
      NULL,
      b.dur,
      -1.0 * b.dur * s.bg_thresh,
      -1.0 * b.dur * s.thresh,
      -1.0 * b.dur * s.hard_limit,
      -b.dur * s.is_above_setpoint,
      -b.dur * s.is_above_limit,
      -b.dur * s.is_in_range
    FROM boost_part AS b
    CROSS JOIN wb_dirty_sample AS s ON s.seq = b.seq
  ),
  summed AS (
    SELECT
      p.window_index,
      sum(p.dirty_time) AS dirty_time,
      sum(p.boosted_dirty_time) AS boosted_dirty_time,
      max(p.dirty_max) AS dirty_max,
      sum(p.boosted_ns) AS boosted_ns,
      sum(p.bg_thresh_time) AS bg_thresh_time,
      sum(p.thresh_time) AS thresh_time,
      sum(p.limit_time) AS limit_time,
      sum(p.above_setpoint_ns) AS above_setpoint_ns,
      sum(p.above_limit_ns) AS above_limit_ns,
      sum(p.in_range_ns) AS in_range_ns
    FROM part AS p
    GROUP BY p.window_index
  ),
  mean AS (
    SELECT
      s.window_index,
      m.dirty_time / nullif(s.to_ts - s.from_ts, 0) AS dirty,
      m.dirty_max,
      -- What is compared with thresholds is of the same time as they are.
      (m.dirty_time - m.boosted_dirty_time)
        / nullif(s.to_ts - s.from_ts - m.boosted_ns, 0) AS plain_dirty,
      s.to_ts - s.from_ts - m.boosted_ns AS plain_ns,
      m.bg_thresh_time / nullif(s.to_ts - s.from_ts - m.boosted_ns, 0)
        AS bg_thresh,
      m.thresh_time / nullif(s.to_ts - s.from_ts - m.boosted_ns, 0) AS thresh,
      m.limit_time / nullif(s.to_ts - s.from_ts - m.boosted_ns, 0)
        AS hard_limit,
      m.above_setpoint_ns,
      m.above_limit_ns,
      m.in_range_ns
    FROM sampled AS s
    JOIN summed AS m ON m.window_index = s.window_index
  ),
  placed AS (
    SELECT m.*, (m.thresh + m.bg_thresh) / 2 AS freerun
    FROM mean AS m
  )
SELECT
  e.window_index,
  e.start_ts AS window_start_ns,
  CAST(p.dirty * u.page_bytes AS INTEGER) AS dirty_bytes,
  p.dirty_max * u.page_bytes AS dirty_max_bytes,
  CAST(p.bg_thresh * u.page_bytes AS INTEGER) AS bg_thresh_bytes,
  CAST(p.thresh * u.page_bytes AS INTEGER) AS thresh_bytes,
  CAST(p.hard_limit * u.page_bytes AS INTEGER) AS limit_bytes,
  CAST((p.hard_limit + p.freerun) / 2 * u.page_bytes AS INTEGER)
    AS setpoint_bytes,
  CAST(p.freerun * u.page_bytes AS INTEGER) AS freerun_bytes,
  (p.plain_dirty - p.freerun) / nullif(p.hard_limit - p.freerun, 0)
    AS position_ratio,
  (p.plain_dirty - 0.75 * p.thresh) / nullif(0.25 * p.thresh, 0)
    AS range_position_ratio,
  CASE WHEN p.plain_ns > 0 THEN p.in_range_ns END AS in_range_ns,
  p.plain_ns,
  CASE WHEN p.plain_ns > 0 THEN p.above_setpoint_ns END AS above_setpoint_ns,
  CASE WHEN p.plain_ns > 0 THEN p.above_limit_ns END AS above_limit_ns
FROM wb_dirty_edge AS e
CROSS JOIN wb_units AS u
LEFT JOIN placed AS p ON p.window_index = e.window_index
WHERE e.carried_seq IS NOT NULL OR e.after_seq > e.first_seq;
