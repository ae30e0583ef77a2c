-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_dirty_boost
-- @summary  global_dirty_state samples with the thresholds of a real-time
--   caller, a quarter and more above those of others: by tasks that
--   sched_switch shows to be real-time, and runs of up to eight samples that
--   lie so much above the sample before and the one after.
-- @grain    sample; order seq
-- @key      seq
-- @needs    raw_global_dirty_state, wb_dirty_sum, wb_dirty_edge, wb_rt_task
-- @events   writeback:global_dirty_state
-- @optional sched:sched_switch
-- @column   seq INTEGER of the sample
-- @source   mm/page-writeback.c domain_dirty_limits()
-- @materialize
CREATE VIEW wb_dirty_boost AS
WITH
  -- A fall back to the thresholds of the others.
  dropped AS (
    SELECT n.seq
    FROM wb_dirty_sum AS w
    CROSS JOIN wb_dirty_edge AS e ON e.window_index = w.window_index
    CROSS JOIN raw_global_dirty_state AS n
      ON n.seq >= e.first_seq AND n.seq < e.after_seq
    CROSS JOIN raw_global_dirty_state AS p ON p.seq = n.prev_seq
    WHERE w.drops_count > 0 AND p.thresh * 10 > n.thresh * 12
    UNION ALL
    -- Just behind the time of interest.
    SELECT n.seq
    FROM (
      SELECT x.seq, x.prev_seq, x.thresh
      FROM raw_global_dirty_state AS x
      WHERE x.seq >= (SELECT max(e.after_seq) FROM wb_dirty_edge AS e)
      ORDER BY x.seq
      LIMIT 8
    ) AS n
    JOIN raw_global_dirty_state AS p ON p.seq = n.prev_seq
    WHERE p.thresh * 10 > n.thresh * 12
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
    WHERE g.thresh * 10 > p.thresh * 12
    GROUP BY d.seq
  )
SELECT g.seq
FROM run AS r
CROSS JOIN raw_global_dirty_state AS g
  ON g.seq >= r.seq AND g.seq < r.end_seq
UNION
SELECT g.seq
FROM raw_global_dirty_state AS g
WHERE g.tid IN (SELECT t.tid FROM wb_rt_task AS t);
