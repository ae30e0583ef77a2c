-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages of the machine and their thresholds, over time and in windows.

-- @view     wb_dirty_state
-- @summary  Dirty pages of the machine and their thresholds over time; each row
--   holds until the next.
-- @grain    event; order seq
-- @key      seq
-- @events   writeback:global_dirty_state
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock
-- @column   until_ts INTEGER ns, next row's ts, or the trace's end
-- @column   tid INTEGER thread that asked
-- @column   nr_dirty_bytes INTEGER dirty page cache
-- @column   nr_writeback_bytes INTEGER under writeback, swap-out included
-- @column   dirty_bytes INTEGER dirty, under writeback and unstable: what the
--   kernel compares with its thresholds
-- @column   bg_thresh_bytes INTEGER where the flusher starts; NULL when boosted
-- @column   thresh_bytes INTEGER dirty threshold; NULL when boosted
-- @column   limit_bytes INTEGER max(thresh, dirty_limit); NULL when boosted
-- @column   freerun_bytes INTEGER (thresh + bg_thresh) / 2: below, no task is
--   throttled
-- @column   setpoint_bytes INTEGER (limit + freerun) / 2: where the dirty pages
--   should settle
-- @column   dirtied_total_bytes INTEGER pages dirtied since boot; can go back
-- @column   written_total_bytes INTEGER pages written since boot, swap included
-- @column   is_boosted INTEGER 1: thresholds of a real-time caller, a quarter
--   and more above those of others
-- @source   mm/page-writeback.c domain_dirty_limits(), domain_poll_intv()
CREATE VIEW wb_dirty_state AS
WITH
  told AS (
    SELECT
      s.*,
      g.nr_dirty, g.nr_writeback, g.nr_dirtied, g.nr_written,
      CASE WHEN b.seq IS NULL THEN 0 ELSE 1 END AS is_boosted
    FROM _dirty_sample AS s
    CROSS JOIN raw_global_dirty_state AS g ON g.seq = s.seq
    LEFT JOIN _dirty_boost AS b ON b.seq = s.seq
  )
SELECT
  t.seq, t.ts,
  coalesce(
    (
      SELECT n.ts
      FROM raw_global_dirty_state AS n
      WHERE n.seq > t.seq
      ORDER BY n.seq
      LIMIT 1
    ),
    b.last_ts
  ) AS until_ts,
  t.tid,
  t.nr_dirty * u.page_bytes AS nr_dirty_bytes,
  t.nr_writeback * u.page_bytes AS nr_writeback_bytes,
  t.dirty * u.page_bytes AS dirty_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.bg_thresh * u.page_bytes END
    AS bg_thresh_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.thresh * u.page_bytes END AS thresh_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.hard_limit * u.page_bytes END
    AS limit_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.freerun * u.page_bytes END
    AS freerun_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.setpoint * u.page_bytes END
    AS setpoint_bytes,
  t.nr_dirtied * u.page_bytes AS dirtied_total_bytes,
  t.nr_written * u.page_bytes AS written_total_bytes,
  t.is_boosted
FROM told AS t
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS b;

-- @view     wb_dirty_window
-- @summary  Dirty pages and their thresholds in windows: means weighted by
--   time, each sample holding until the next.
-- @grain    window from the first sample on; order window_index
-- @key      window_index
-- @events   writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
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
-- @column   boosted_count INTEGER samples with the thresholds of a real-time
--   task
-- @column   above_setpoint_ns INTEGER time with dirty above the setpoint
-- @column   above_limit_ns INTEGER time with dirty above the limit
-- @materialize
CREATE VIEW wb_dirty_window AS
WITH
  -- Means of carried values say nothing about a window without a sample.
  sampled AS (
    SELECT
      e.window_index, e.window_start_ns, e.state_last_seq,
      coalesce(e.state_before_seq, e.state_first_seq) AS from_seq,
      CASE WHEN e.state_before_seq IS NULL THEN f.ts ELSE e.window_start_ns END
        AS from_ts,
      min(e.window_end_ns, b.end_ts, b.last_ts) AS to_ts
    FROM wb_window AS e
    CROSS JOIN wb_bounds AS b
    CROSS JOIN raw_global_dirty_state AS f ON f.seq = e.state_first_seq
    WHERE e.state_after_seq > e.state_first_seq
  ),
  -- As if the last sample had held from the start on; _dirty_sum takes what
  -- is too much.
  border(window_index, seq, dur) AS (
    SELECT s.window_index, s.state_last_seq, s.to_ts - s.window_start_ns
    FROM sampled AS s
    UNION ALL
    -- Nothing is known before the first sample.
    SELECT s.window_index, s.from_seq, s.window_start_ns - s.from_ts
    FROM sampled AS s
  ),
  -- Samples of real-time tasks tell nothing of the thresholds of others.
  boost AS (
    SELECT
      b.seq, p.ts,
      (
        SELECT n.ts
        FROM _dirty_sample AS n
        WHERE n.seq > b.seq
        ORDER BY n.seq
        LIMIT 1
      ) AS until_ts
    FROM _dirty_boost AS b
    CROSS JOIN _dirty_sample AS p ON p.seq = b.seq
  ),
  boost_part AS (
    SELECT
      s.window_index, b.seq,
      CASE WHEN b.until_ts < s.to_ts THEN b.until_ts ELSE s.to_ts END
        - max(b.ts, s.from_ts) AS dur
    FROM boost AS b
    JOIN sampled AS s
      ON s.to_ts > b.ts AND (b.until_ts IS NULL OR s.from_ts < b.until_ts)
  ),
  part AS (
    SELECT
      t.window_index, t.dirty_time,
      0.0 AS boosted_dirty_time,
      t.dirty_max,
      0 AS boosted_ns,
      t.bg_thresh_time, t.thresh_time, t.limit_time, t.above_setpoint_ns,
      t.above_limit_ns, t.in_range_ns
    FROM _dirty_sum AS t
    UNION ALL
    SELECT
      b.window_index,
      1.0 * b.dur * s.dirty,
      0.0, s.dirty, 0,
      1.0 * b.dur * s.bg_thresh,
      1.0 * b.dur * s.thresh,
      1.0 * b.dur * s.hard_limit,
      b.dur * s.is_above_setpoint,
      b.dur * s.is_above_limit,
      b.dur * s.is_in_range
    FROM border AS b
    CROSS JOIN _dirty_sample AS s ON s.seq = b.seq
    UNION ALL
    SELECT
      b.window_index, 0.0,
      1.0 * b.dur * s.dirty,
      NULL, b.dur,
      -1.0 * b.dur * s.bg_thresh,
      -1.0 * b.dur * s.thresh,
      -1.0 * b.dur * s.hard_limit,
      -b.dur * s.is_above_setpoint,
      -b.dur * s.is_above_limit,
      -b.dur * s.is_in_range
    FROM boost_part AS b
    CROSS JOIN _dirty_sample AS s ON s.seq = b.seq
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
      m.above_setpoint_ns, m.above_limit_ns, m.in_range_ns
    FROM sampled AS s
    JOIN summed AS m ON m.window_index = s.window_index
  ),
  placed AS (
    SELECT m.*, (m.thresh + m.bg_thresh) / 2 AS freerun
    FROM mean AS m
  )
SELECT
  e.window_index, e.window_start_ns,
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
  (
    SELECT count(*)
    FROM _dirty_boost AS b
    WHERE b.seq >= e.state_first_seq AND b.seq < e.state_after_seq
  ) AS boosted_count,
  CASE WHEN p.plain_ns > 0 THEN p.above_setpoint_ns END AS above_setpoint_ns,
  CASE WHEN p.plain_ns > 0 THEN p.above_limit_ns END AS above_limit_ns
FROM wb_window AS e
CROSS JOIN wb_units AS u
LEFT JOIN placed AS p ON p.window_index = e.window_index
WHERE e.state_before_seq IS NOT NULL OR e.state_after_seq > e.state_first_seq;

-- @view     _dirty_sample
-- @summary  global_dirty_state with what the kernel makes of it, in pages. The
--   sums over millions of them read it, so it has no joins.
-- @grain    event; order seq
-- @column   seq INTEGER order of all records
-- @column   prev_seq INTEGER of the sample before; NULL = none
-- @column   repeats_count INTEGER samples just before it with these pages and
--   thresholds; 0 = none, or not known
-- @column   tid INTEGER thread that asked
-- @column   dirty INTEGER pages dirty, under writeback and unstable
-- @column   hard_limit INTEGER pages, max(thresh, dirty_limit)
-- @column   freerun INTEGER pages, (thresh + bg_thresh) / 2
-- @column   setpoint INTEGER pages, (limit + freerun) / 2
-- @column   is_above_setpoint INTEGER 1: dirty is more than the setpoint
-- @column   is_above_limit INTEGER 1: dirty is more than the limit
-- @column   is_in_range INTEGER 1: dirty is in the control range of 2011, from
--   thresh - thresh/4 to thresh
-- @source   mm/page-writeback.c domain_dirty_limits(), hard_dirty_limit()
CREATE VIEW _dirty_sample AS
SELECT
  g.seq, g.prev_seq,
  coalesce(g.repeats_count, 0) AS repeats_count,
  g.ts, g.tid,
  dirty_pages!(g) AS dirty,
  g.bg_thresh, g.thresh,
  hard_limit!(g) AS hard_limit,
  (g.thresh + g.bg_thresh) / 2 AS freerun,
  (hard_limit!(g) + (g.thresh + g.bg_thresh) / 2) / 2 AS setpoint,
  -- The same as dirty > setpoint, without its divisions.
  4 * dirty_pages!(g) > 2 * hard_limit!(g) + g.thresh + g.bg_thresh
    AS is_above_setpoint,
  dirty_pages!(g) > g.thresh AND dirty_pages!(g) > g.dirty_limit
    AS is_above_limit,
  dirty_pages!(g) <= g.thresh AND 4 * dirty_pages!(g) >= 3 * g.thresh
    AS is_in_range
FROM raw_global_dirty_state AS g;

-- @view     _dirty_boost
-- @summary  global_dirty_state samples with the thresholds of a real-time
--   caller, a quarter and more above those of others: by tasks that
--   sched_switch shows to be real-time, and runs of up to eight samples that
--   lie so much above the sample before and the one after.
-- @grain    sample; order seq
-- @key      seq
-- @column   seq INTEGER of the sample
-- @source   mm/page-writeback.c domain_dirty_limits()
-- @materialize
-- @cost     85
CREATE VIEW _dirty_boost AS
WITH
  -- A fall back to the thresholds of the others.
  dropped AS (
    SELECT n.seq
    FROM wb_rule AS v
    CROSS JOIN _dirty_sum AS w
    CROSS JOIN wb_window AS e ON e.window_index = w.window_index
    CROSS JOIN raw_global_dirty_state AS n
      ON n.seq >= e.state_first_seq AND n.seq < e.state_after_seq
    CROSS JOIN raw_global_dirty_state AS p ON p.seq = n.prev_seq
    WHERE w.drops_count > 0
      AND coalesce(n.repeats_count, 0) = 0
      AND p.thresh * 100 > n.thresh * v.boost_percent
    UNION ALL
    -- Just behind the time of interest.
    SELECT n.seq
    FROM (
      SELECT x.seq, x.prev_seq, x.thresh
      FROM raw_global_dirty_state AS x
      WHERE x.seq >= (SELECT max(e.state_after_seq) FROM wb_window AS e)
      ORDER BY x.seq
      LIMIT 8
    ) AS n
    JOIN raw_global_dirty_state AS p ON p.seq = n.prev_seq
    CROSS JOIN wb_rule AS v
    WHERE p.thresh * 100 > n.thresh * v.boost_percent
  ),
  -- The last rise among the eight samples before it.
  run AS (
    SELECT max(g.seq) AS seq, d.seq AS end_seq
    FROM dropped AS d
    CROSS JOIN raw_global_dirty_state AS g
      ON g.seq < d.seq
      AND g.seq >= (
        SELECT min(s.seq)
        FROM (
          SELECT x.seq
          FROM raw_global_dirty_state AS x
          WHERE x.seq < d.seq
          ORDER BY x.seq DESC
          LIMIT 8
        ) AS s
      )
    CROSS JOIN raw_global_dirty_state AS p ON p.seq = g.prev_seq
    CROSS JOIN wb_rule AS v
    WHERE g.thresh * 100 > p.thresh * v.boost_percent
    GROUP BY d.seq
  )
SELECT g.seq
FROM run AS r
CROSS JOIN raw_global_dirty_state AS g
  ON g.seq >= r.seq AND g.seq < r.end_seq
UNION
SELECT g.seq
FROM raw_global_dirty_state AS g
WHERE g.tid IN (SELECT t.tid FROM wb_thread AS t WHERE t.is_real_time = 1);

-- @view     _dirty_sum
-- @summary  What changed at the samples of each window, times the time back to
--   the window's start, below 0: a mean is made of it without a look at the
--   samples that say what the one before said, which most do. With x the last
--   value, a sum over time is x times the window's length, and this.
-- @grain    window with a change; order window_index
-- @key      window_index
-- @column   dirty_time REAL pages x ns
-- @column   dirty_max INTEGER pages, largest
-- @column   bg_thresh_time REAL pages x ns
-- @column   thresh_time REAL pages x ns
-- @column   limit_time REAL pages x ns
-- @column   above_setpoint_ns INTEGER of dirty above the setpoint
-- @column   above_limit_ns INTEGER of dirty above the limit
-- @column   in_range_ns INTEGER of dirty in the control range of 2011
-- @column   drops_count INTEGER samples with a thresh a fifth and more below
--   the one before, as behind a real-time task
-- @materialize
-- @cost     440
CREATE VIEW _dirty_sum AS
SELECT
  e.window_index,
  total((e.window_start_ns - n.ts) * (n.dirty - p.dirty)) AS dirty_time,
  max(n.dirty) AS dirty_max,
  total((e.window_start_ns - n.ts) * (n.bg_thresh - p.bg_thresh))
    AS bg_thresh_time,
  total((e.window_start_ns - n.ts) * (n.thresh - p.thresh)) AS thresh_time,
  total((e.window_start_ns - n.ts) * (n.hard_limit - p.hard_limit))
    AS limit_time,
  sum((e.window_start_ns - n.ts) * (n.is_above_setpoint - p.is_above_setpoint))
    AS above_setpoint_ns,
  sum((e.window_start_ns - n.ts) * (n.is_above_limit - p.is_above_limit))
    AS above_limit_ns,
  sum((e.window_start_ns - n.ts) * (n.is_in_range - p.is_in_range))
    AS in_range_ns,
  -- Asked for once: a join would have to sort.
  count(*) FILTER (
    WHERE p.thresh * 100
      > n.thresh * (SELECT v.boost_percent FROM wb_rule AS v)
  ) AS drops_count
FROM wb_window AS e
-- In the order of windows, so that nothing is sorted.
CROSS JOIN _dirty_sample AS n
  ON n.seq >= e.state_first_seq AND n.seq < e.state_after_seq
CROSS JOIN _dirty_sample AS p ON p.seq = n.prev_seq
WHERE n.repeats_count = 0
  AND (
    n.dirty <> p.dirty
    OR n.thresh <> p.thresh
    OR n.hard_limit <> p.hard_limit
    OR n.bg_thresh <> p.bg_thresh
  )
GROUP BY e.window_index;
