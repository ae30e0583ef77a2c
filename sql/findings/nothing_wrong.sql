-- SPDX-License-Identifier: Apache-2.0
-- @finding   nothing_wrong
-- @title     Nothing is wrong
-- @summary   No other finding is more than a note. Its row is there always, and
--   it is told only then.
-- @severity  ok
-- @confidence measured
-- @sentence  Nothing is wrong:[ at most {dirty_max_bytes} were dirty, of a
--   limit of {limit_max_bytes}, and] {calm}[tasks were held up for {held_ns},
--   never longer than {longest_ns} at a time].
-- @evidence  dirty_limits: dirty_max_bytes = max(dirty_max_bytes);
--   limit_max_bytes = max(limit_max_bytes)
-- @evidence  lost_time: held_ns = sum(total_ns, kind=throttle); longest_ns =
--   max(max_ns, kind=throttle)
-- @needs     wb_loss, wb_dirty_extent, wb_bounds
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that tasks were throttled
-- @column    calm TEXT no write was held up; empty where somebody was
-- @column    held_ns INTEGER the same; NULL = nobody
-- @column    longest_ns INTEGER longest single wait
-- @column    dirty_max_bytes INTEGER most that was dirty
-- @column    limit_max_bytes INTEGER highest limit
-- @source    docs/findings.md
SELECT
  coalesce(sum(l.dur), 0) AS cost_task_ns,
  CASE WHEN sum(l.dur) > 0 THEN '' ELSE 'no write was held up' END AS calm,
  sum(l.dur) AS held_ns,
  max(l.dur) AS longest_ns,
  m.dirty_max_bytes,
  m.limit_max_bytes
FROM wb_dirty_extent AS m
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_loss AS l
  ON l.kind = 'throttle' AND l.ts >= b.start_ts AND l.ts < b.end_ts
GROUP BY m.dirty_max_bytes, m.limit_max_bytes
ORDER BY cost_task_ns;
