-- SPDX-License-Identifier: Apache-2.0
-- @finding   nothing_wrong
-- @title     Nothing is wrong
-- @summary   No other finding is more than a note. Its row is there always, and
--   it is told only then.
-- @severity  ok
-- @confidence measured
-- @sentence  Nothing is wrong{part:raw}:[ at most {dirty_max_bytes} were dirty,
--   of a limit of {limit_max_bytes}, and] {calm}[tasks were held up for
--   {held_ns}, no write for longer than {longest_ns}].
-- @evidence  dirty_limits: dirty_max_bytes = max(dirty_max_bytes);
--   limit_max_bytes = max(limit_max_bytes)
-- @evidence  lost_time: held_ns = sum(total_ns, kind=throttle); longest_ns =
--   max(whole_call_max_ns, kind=throttle)
-- @needs     wb_loss, wb_dirty_extent, wb_bounds, wb_params, wb_rule
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that tasks were throttled
-- @column    confidence TEXT inferred of less time than a call that is felt
--   takes
-- @column    calm TEXT no write was held up; empty where somebody was
-- @column    held_ns INTEGER the same; NULL = nobody
-- @column    longest_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up, by one or more waits that began in the time of interest
-- @column    part TEXT that only a part was looked at, or little time; empty
--   for the whole
-- @column    dirty_max_bytes INTEGER most that was dirty
-- @column    limit_max_bytes INTEGER highest limit
-- @source    docs/findings.md
WITH
  -- The events of 2011 tell no calls: each wait is one then.
  held AS (
    SELECT sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle' AND l.ts >= b.start_ts AND l.ts < b.end_ts
    GROUP BY coalesce(l.call_seq, -l.wait_id)
  ),
  summed AS (
    SELECT sum(h.dur) AS held_ns, max(h.dur) AS longest_ns FROM held AS h
  ),
  length AS (
    SELECT min(b.end_ts, b.last_ts) - b.start_ts < v.long_call_ns AS is_short
    FROM wb_bounds AS b
    CROSS JOIN wb_rule AS v
  )
SELECT
  coalesce(s.held_ns, 0) AS cost_task_ns,
  CASE l.is_short WHEN 1 THEN 'inferred' ELSE 'measured' END AS confidence,
  CASE WHEN s.held_ns > 0 THEN '' ELSE 'no write was held up' END AS calm,
  s.held_ns,
  s.longest_ns,
  CASE
    WHEN p.t0_ns IS NOT NULL OR p.t1_ns IS NOT NULL
      THEN ' in this part of the trace'
    WHEN l.is_short THEN ' in so short a time'
    ELSE ''
  END AS part,
  m.dirty_max_bytes,
  m.limit_max_bytes
FROM wb_dirty_extent AS m
CROSS JOIN summed AS s
CROSS JOIN length AS l
CROSS JOIN wb_params AS p
ORDER BY cost_task_ns;
