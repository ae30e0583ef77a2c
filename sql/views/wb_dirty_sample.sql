-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_sample
-- @summary  global_dirty_state with what the kernel makes of it, in pages. The
--   sums over millions of them read it, so it has no joins.
-- @grain    event; order seq
-- @needs    raw_global_dirty_state
-- @events   writeback:global_dirty_state
-- @column   seq INTEGER order of all records
-- @column   prev_seq INTEGER of the sample before; NULL = none
-- @column   ts INTEGER ns, trace clock
-- @column   tid INTEGER thread that asked
-- @column   dirty INTEGER pages dirty, under writeback and unstable
-- @column   bg_thresh INTEGER pages
-- @column   thresh INTEGER pages
-- @column   hard_limit INTEGER pages, max(thresh, dirty_limit)
-- @column   freerun INTEGER pages, (thresh + bg_thresh) / 2
-- @column   setpoint INTEGER pages, (limit + freerun) / 2
-- @column   is_above_setpoint INTEGER 1: dirty is more than the setpoint
-- @column   is_above_limit INTEGER 1: dirty is more than the limit
-- @column   is_in_range INTEGER 1: dirty is in the control range of 2011, from
--   thresh - thresh/4 to thresh
-- @source   mm/page-writeback.c domain_dirty_limits(), hard_dirty_limit()
CREATE VIEW wb_dirty_sample AS
WITH
  limited AS (
    SELECT
      g.seq,
      g.prev_seq,
      g.ts,
      g.tid,
      g.nr_dirty + g.nr_writeback + coalesce(g.nr_unstable, 0) AS dirty,
      g.bg_thresh,
      g.thresh,
      g.dirty_limit,
      CASE WHEN g.thresh > g.dirty_limit THEN g.thresh ELSE g.dirty_limit END
        AS hard_limit
    FROM raw_global_dirty_state AS g
  )
SELECT
  s.seq,
  s.prev_seq,
  s.ts,
  s.tid,
  s.dirty,
  s.bg_thresh,
  s.thresh,
  s.hard_limit,
  (s.thresh + s.bg_thresh) / 2 AS freerun,
  (s.hard_limit + (s.thresh + s.bg_thresh) / 2) / 2 AS setpoint,
  -- The same as dirty > setpoint, without its divisions.
  4 * s.dirty > 2 * s.hard_limit + s.thresh + s.bg_thresh AS is_above_setpoint,
  s.dirty > s.thresh AND s.dirty > s.dirty_limit AS is_above_limit,
  s.dirty <= s.thresh AND 4 * s.dirty >= 3 * s.thresh AS is_in_range
FROM limited AS s;
