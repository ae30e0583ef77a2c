-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    pause_distribution
-- @title    How long the pauses were
-- @summary  How often balance_dirty_pages() ordered a pause of each length.
-- @read     Pauses are whole jiffies in ms, so there are few lengths. at_most
--   is the share of all pauses that were no longer: the curve that `compare`
--   draws. A pause of 0 or less is none and not counted.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    length of a pause; order pause_ns
-- @events   writeback:balance_dirty_pages
-- @column   pauses_count INTEGER pauses of this length
-- @column   at_most_ratio REAL share of all pauses that were at most so long
WITH
  pause_count AS (
    SELECT c.pause_ns, count(*) AS pauses_count
    FROM wb_throttle AS c
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    JOIN wb_task AS t ON t.task_id = c.task_id
    WHERE c.is_step = 1
      AND c.pause_ns > 0
      AND in_time!(c.ts, b)
      AND of_wb!(c, p)
      AND (p.tid IS NULL OR c.tid = p.tid)
      AND (p.comm_glob IS NULL OR t.comm GLOB p.comm_glob)
    GROUP BY c.pause_ns
  )
SELECT
  p.pause_ns, p.pauses_count,
  1.0 * sum(p.pauses_count) OVER (
    ORDER BY p.pause_ns ROWS UNBOUNDED PRECEDING
  ) / sum(p.pauses_count) OVER () AS at_most_ratio
FROM pause_count AS p
ORDER BY p.pause_ns;
