-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    dirty_limits
-- @title    Dirty limits and the settings behind them
-- @summary  The machine's dirty thresholds, what was dirty at most, and the
--   settings of vm.dirty_* when the recording began.
-- @read     thresh is where writers are stopped in the end, bg_thresh where the
--   flusher starts. Of a pair of bytes and ratio the one that is in force has a
--   value; none: the folder has no file sysctls.
-- @filters  range
-- @grain    one row
-- @events   writeback:global_dirty_state
-- @column   thresh_bytes INTEGER mean over time of the dirty threshold, since
--   somebody last changed it (query limit_changes)
-- @column   bg_thresh_bytes INTEGER mean over time of where the flusher starts,
--   since then
-- @column   limit_max_bytes INTEGER highest max(thresh, dirty_limit)
-- @column   dirty_max_bytes INTEGER most that was dirty and under writeback
-- @column   limit_min_bytes INTEGER lowest of the samples
-- @column   thresh_max_bytes INTEGER highest dirty threshold of the samples
-- @column   least_pages INTEGER smallest count of pages, or limit
-- @column   vm_dirty_bytes INTEGER vm.dirty_bytes; NULL = not set, or not known
-- @column   vm_dirty_percent INTEGER vm.dirty_ratio; NULL likewise
-- @column   vm_dirty_background_bytes INTEGER vm.dirty_background_bytes; NULL
--   likewise
-- @column   vm_dirty_background_percent INTEGER vm.dirty_background_ratio; NULL
--   likewise
-- @metric   dirty_max_bytes neutral: most data that waited in memory for disks
-- @source   mm/page-writeback.c domain_dirty_limits()
SELECT
  e.thresh_bytes, e.bg_thresh_bytes, e.limit_max_bytes, e.dirty_max_bytes,
  e.limit_min_bytes, e.thresh_max_bytes, e.least_pages,
  u.dirty_bytes AS vm_dirty_bytes,
  u.dirty_ratio AS vm_dirty_percent,
  u.dirty_background_bytes AS vm_dirty_background_bytes,
  u.dirty_background_ratio AS vm_dirty_background_percent
FROM _dirty_extent AS e
CROSS JOIN wb_units AS u
ORDER BY e.thresh_bytes;

-- @view     _dirty_extent
-- @summary  The machine's dirty pages and thresholds in the time of interest,
--   in one look; thresholds of real-time tasks, a quarter above, are in them.
-- @grain    one row
-- @column   dirty_max_bytes INTEGER as in dirty_limits
-- @column   bg_thresh_bytes INTEGER as in dirty_limits
-- @column   thresh_bytes INTEGER as in dirty_limits
-- @column   limit_max_bytes INTEGER as in dirty_limits
-- @column   limit_min_bytes INTEGER as in dirty_limits
-- @column   thresh_max_bytes INTEGER as in dirty_limits
-- @column   least_pages INTEGER as in dirty_limits
-- @materialize
-- @cost     250
CREATE VIEW _dirty_extent AS
WITH
  begin AS (
    SELECT
      w.state_before_seq AS carried_seq,
      w.window_start_ns AS start_ts,
      w.state_first_seq AS first_seq
    FROM wb_window AS w
    WHERE w.state_first_seq IS NOT NULL
    ORDER BY w.window_index
    LIMIT 1
  ),
  whole AS (
    SELECT
      o.first_seq,
      max(w.state_after_seq) AS after_seq,
      max(w.state_last_seq) AS last_seq,
      max(min(w.window_end_ns, b.end_ts, b.last_ts)) AS end_ts,
      o.carried_seq,
      -- From the first sample on where nothing tells what was before.
      CASE WHEN o.carried_seq IS NULL THEN g.ts ELSE o.start_ts END AS start_ts
    FROM begin AS o
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_window AS w ON w.state_first_seq IS NOT NULL
    LEFT JOIN raw_global_dirty_state AS g ON g.seq = o.first_seq
    GROUP BY o.first_seq, o.carried_seq, o.start_ts, g.ts
  ),
  -- A mean of two limits was never in force.
  edge AS (
    SELECT
      w.*,
      coalesce(max(c.seq), -1) AS changed_seq,
      coalesce(max(c.ts), w.start_ts) AS from_ts
    FROM whole AS w
    LEFT JOIN wb_limit_change AS c
      ON c.seq >= w.first_seq AND c.seq < w.after_seq
    GROUP BY w.first_seq
  ),
  -- A mean over time is the last value, less each change times how late it
  -- came. Samples that say what the one before said change nothing.
  changed AS (
    SELECT
      max(dirty_pages!(n)) AS dirty_max,
      max(hard_limit!(n)) AS limit_max,
      min(hard_limit!(n)) AS limit_min,
      max(n.thresh) AS thresh_max,
      min(min(n.nr_dirty, n.nr_writeback, coalesce(n.dirty_limit, 0))) AS least,
      total(
        CASE WHEN n.seq > d.changed_seq
          THEN (n.ts - d.from_ts) * (n.bg_thresh - p.bg_thresh)
        END
      ) AS bg_late,
      total(
        CASE WHEN n.seq > d.changed_seq
          THEN (n.ts - d.from_ts) * (n.thresh - p.thresh)
        END
      ) AS late
    FROM edge AS d
    CROSS JOIN raw_global_dirty_state AS n
      ON n.seq >= d.first_seq AND n.seq < d.after_seq
    LEFT JOIN raw_global_dirty_state AS p ON p.seq = n.prev_seq
    WHERE coalesce(n.repeats_count, 0) = 0 OR n.seq = d.first_seq
  )
SELECT
  c.dirty_max * u.page_bytes AS dirty_max_bytes,
  CAST(
    (
      l.bg_thresh - c.bg_late / coalesce(nullif(d.end_ts - d.from_ts, 0), 1)
    ) * u.page_bytes AS INTEGER
  ) AS bg_thresh_bytes,
  CAST(
    (l.thresh - c.late / coalesce(nullif(d.end_ts - d.from_ts, 0), 1))
    * u.page_bytes AS INTEGER
  ) AS thresh_bytes,
  max(coalesce(c.limit_max, 0), coalesce(hard_limit!(f), 0), hard_limit!(l))
    * u.page_bytes AS limit_max_bytes,
  c.limit_min * u.page_bytes AS limit_min_bytes,
  c.thresh_max * u.page_bytes AS thresh_max_bytes,
  c.least AS least_pages
FROM changed AS c
CROSS JOIN wb_units AS u
LEFT JOIN edge AS d ON 1 = 1
LEFT JOIN raw_global_dirty_state AS l ON l.seq = d.last_seq
LEFT JOIN raw_global_dirty_state AS f ON f.seq = d.carried_seq;
