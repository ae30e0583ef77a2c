-- SPDX-License-Identifier: Apache-2.0
-- @finding   nothing_wrong
-- @title     Nothing is wrong
-- @summary   No other finding is more than a note. The rule always has a row,
--   which is shown only then. It is about dirty throttling alone where other
--   waits took half a second or more, or could not be seen: without
--   sched_switch and system calls it is inferred. A part of the time with a
--   piece of a write that was held for half a second or more in all is never
--   called healthy.
-- @severity  ok
-- @confidence measured
-- @sentence  {lead:raw}{part:raw}:[ at most {dirty_max_bytes} were dirty,
--   of a limit of {limit_max_bytes}, and] {calm}[tasks were held up by dirty
--   throttling for {held_ns}, no write for longer than {longest_ns}][; other
--   waits took {other_ns}]{unseen:raw}.
-- @evidence  dirty_limits: dirty_max_bytes = max(dirty_max_bytes);
--   limit_max_bytes = max(limit_max_bytes)
-- @evidence  lost_time: held_ns = sum(total_ns, kind=throttle); longest_ns =
--   max(whole_call_max_ns, kind=throttle); other_ns =
--   sum(total_ns) - sum(total_ns, kind=throttle) - sum(total_ns,
--   finding=flusher_waits_journal)
-- @needs     wb_loss, wb_watched, wb_wait_before, wb_dirty_extent, wb_bounds,
--   wb_params, wb_rule, raw_meta
-- @events    writeback:balance_dirty_pages
-- @column    cost_task_ns INTEGER time that tasks were throttled
-- @column    severity TEXT ok; note = no all-clear
-- @column    title TEXT what that is then, or what it is about; NULL = nothing
--   is wrong
-- @column    confidence TEXT inferred of less time than a call that is felt
--   takes, of a file that lacks what began before, and without events of other
--   waits
-- @column    lead TEXT that nothing is wrong, or that it cannot be said
-- @column    calm TEXT that throttling held up no write, or none that it did
--   not before; empty where it held up any: other waits have findings of their
--   own
-- @column    held_ns INTEGER the same; NULL = nobody
-- @column    longest_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up, by one or more waits that began in the time of interest
-- @column    other_ns INTEGER time that tasks lost in other waits; NULL = that
--   is little, or not known
-- @column    unseen TEXT that other waits were not recorded; empty where they
--   were
-- @column    part TEXT that only a part was looked at, or little time; empty
--   for the whole
-- @column    dirty_max_bytes INTEGER most that was dirty
-- @column    limit_max_bytes INTEGER highest limit
-- @source    docs/findings.md
WITH
  -- The events of 2011 tell no calls: each wait is one then.
  held AS (
    SELECT
      sum(CASE l.kind WHEN 'throttle' THEN l.dur END) AS dur,
      sum(CASE WHEN l.kind <> 'throttle' THEN l.dur END) AS other_dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding IS NOT 'flusher_waits_journal'
      AND l.ts >= b.start_ts
      AND l.ts < b.end_ts
    GROUP BY coalesce(l.call_seq, -l.wait_id)
  ),
  summed AS MATERIALIZED (
    SELECT
      sum(h.dur) AS held_ns,
      max(h.dur) AS longest_ns,
      sum(h.other_dur) AS other_ns
    FROM held AS h
  ),
  -- What is left of a long call in a part may be short.
  piece AS (
    SELECT 1 AS is_long
    FROM wb_loss AS l
    CROSS JOIN wb_rule AS v
    WHERE l.call_seq IN (
      SELECT o.call_seq
      FROM wb_params AS p
      CROSS JOIN wb_bounds AS b
      CROSS JOIN wb_loss AS o
      WHERE (p.t0_ns IS NOT NULL OR p.t1_ns IS NOT NULL)
        AND o.ts + o.dur > b.start_ts
        AND o.ts < b.end_ts
    )
    GROUP BY l.call_seq, v.long_call_ns
    HAVING sum(l.dur) >= v.long_call_ns
    LIMIT 1
  ),
  known AS (
    SELECT
      EXISTS (SELECT 1 FROM piece) AS is_piece,
      w.is_watched,
      CASE WHEN e.other_ns >= v.long_call_ns THEN e.other_ns END AS other_ns,
      EXISTS (
        SELECT 1
        FROM wb_wait_before AS w
        CROSS JOIN wb_loss AS o ON o.wait_id = w.wait_id
        WHERE o.kind = 'throttle'
      ) AS is_held_before,
      EXISTS (
        SELECT 1
        FROM raw_meta AS m
        WHERE m.key = 'range_first_ts' AND m.value IS NOT NULL
      ) AS is_cut
    FROM wb_watched AS w
    CROSS JOIN summed AS e
    CROSS JOIN wb_rule AS v
  ),
  length AS (
    SELECT min(b.end_ts, b.last_ts) - b.start_ts < v.long_call_ns AS is_short
    FROM wb_bounds AS b
    CROSS JOIN wb_rule AS v
  )
SELECT
  coalesce(s.held_ns, 0) AS cost_task_ns,
  CASE WHEN k.is_piece THEN 'note' ELSE 'ok' END AS severity,
  CASE
    WHEN k.is_piece THEN 'A part with a piece of a long write'
    WHEN k.other_ns > 0 OR NOT k.is_watched
      THEN 'Nothing is wrong with dirty throttling'
  END AS title,
  CASE
    WHEN l.is_short OR k.is_cut OR NOT k.is_watched THEN 'inferred'
    ELSE 'measured'
  END AS confidence,
  CASE
    WHEN k.is_piece THEN 'No all-clear with a piece of a long write'
    WHEN k.other_ns > 0 OR NOT k.is_watched
      THEN 'Nothing is wrong with dirty throttling'
    ELSE 'Nothing is wrong'
  END AS lead,
  CASE
    WHEN s.held_ns > 0 THEN ''
    WHEN k.is_cut OR k.is_held_before
      THEN 'no write was held up by dirty throttling that was not before'
    ELSE 'no write was held up by dirty throttling'
  END AS calm,
  s.held_ns,
  s.longest_ns,
  k.other_ns,
  CASE
    WHEN k.is_watched OR k.is_piece THEN ''
    ELSE '; whether anything else held a task up was not recorded'
  END AS unseen,
  CASE
    WHEN p.t0_ns IS NOT NULL OR p.t1_ns IS NOT NULL OR k.is_cut
      THEN ' in this part of the trace'
    WHEN l.is_short THEN ' in so short a time'
    ELSE ''
  END AS part,
  m.dirty_max_bytes,
  m.limit_max_bytes
FROM wb_dirty_extent AS m
CROSS JOIN summed AS s
CROSS JOIN length AS l
CROSS JOIN known AS k
CROSS JOIN wb_params AS p
ORDER BY cost_task_ns;
