-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_state
-- @summary  Dirty pages of the machine and their thresholds over time; each row
--   holds until the next.
-- @grain    event; order seq
-- @needs    raw_global_dirty_state, wb_rt_task, wb_units, wb_bounds
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
-- @column   is_boosted INTEGER 1: thresholds of a real-time caller, known by
--   its priority in sched_switch, or as they are a quarter and more above those
--   of others just before and just after
-- @source   mm/page-writeback.c domain_dirty_limits(), domain_poll_intv()
-- @materialize
CREATE VIEW wb_dirty_state AS
WITH
  samples AS (
    SELECT
      g.seq,
      g.ts,
      g.tid,
      g.nr_dirty,
      g.nr_writeback,
      coalesce(g.nr_unstable, 0) AS nr_unstable,
      g.bg_thresh,
      g.thresh,
      CASE WHEN g.thresh > g.dirty_limit THEN g.thresh ELSE g.dirty_limit END
        AS hard_limit,
      g.nr_dirtied,
      g.nr_written,
      lead(g.ts) OVER (ORDER BY g.seq) AS next_ts,
      g.thresh * 10 > 12 * min(g.thresh) OVER (
        ORDER BY g.seq ROWS BETWEEN 8 PRECEDING AND CURRENT ROW
      )
      AND g.thresh * 10 > 12 * min(g.thresh) OVER (
        ORDER BY g.seq ROWS BETWEEN CURRENT ROW AND 8 FOLLOWING
      )
      OR g.tid IN (SELECT r.tid FROM wb_rt_task AS r) AS is_boosted
    FROM raw_global_dirty_state AS g
  ),
  plain AS (
    SELECT
      s.*,
      CASE WHEN NOT s.is_boosted THEN s.bg_thresh END AS plain_bg_thresh,
      CASE WHEN NOT s.is_boosted THEN s.thresh END AS plain_thresh,
      CASE WHEN NOT s.is_boosted THEN s.hard_limit END AS plain_limit,
      CASE WHEN NOT s.is_boosted THEN (s.thresh + s.bg_thresh) / 2 END
        AS freerun
    FROM samples AS s
  )
SELECT
  s.seq,
  s.ts,
  coalesce(s.next_ts, b.last_ts) AS until_ts,
  s.tid,
  s.nr_dirty * u.page_bytes AS nr_dirty_bytes,
  s.nr_writeback * u.page_bytes AS nr_writeback_bytes,
  (s.nr_dirty + s.nr_writeback + s.nr_unstable) * u.page_bytes AS dirty_bytes,
  s.plain_bg_thresh * u.page_bytes AS bg_thresh_bytes,
  s.plain_thresh * u.page_bytes AS thresh_bytes,
  s.plain_limit * u.page_bytes AS limit_bytes,
  s.freerun * u.page_bytes AS freerun_bytes,
  ((s.plain_limit + s.freerun) / 2) * u.page_bytes AS setpoint_bytes,
  s.nr_dirtied * u.page_bytes AS dirtied_total_bytes,
  s.nr_written * u.page_bytes AS written_total_bytes,
  CASE WHEN s.is_boosted THEN 1 ELSE 0 END AS is_boosted
FROM plain AS s
CROSS JOIN wb_units AS u
CROSS JOIN wb_bounds AS b;
