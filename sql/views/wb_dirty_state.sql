-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_state
-- @summary  Dirty pages of the machine and their thresholds over time; each row
--   holds until the next.
-- @grain    event; order seq
-- @key      seq
-- @needs    raw_global_dirty_state, wb_dirty_sample, wb_dirty_boost, wb_units,
--   wb_bounds
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
-- @column   is_boosted INTEGER 1: thresholds of a real-time caller; see
--   wb_dirty_boost
-- @source   mm/page-writeback.c domain_dirty_limits(), domain_poll_intv()
-- @materialize
CREATE VIEW wb_dirty_state AS
WITH
  told AS (
    SELECT
      s.*,
      g.nr_dirty,
      g.nr_writeback,
      g.nr_dirtied,
      g.nr_written,
      CASE WHEN b.seq IS NULL THEN 0 ELSE 1 END AS is_boosted
    FROM wb_dirty_sample AS s
    CROSS JOIN raw_global_dirty_state AS g ON g.seq = s.seq
    LEFT JOIN wb_dirty_boost AS b ON b.seq = s.seq
  )
SELECT
  t.seq,
  t.ts,
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
