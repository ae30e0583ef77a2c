-- SPDX-License-Identifier: Apache-2.0
-- The run itself.

-- @query    trace_state
-- @title    Is the trace whole?
-- @summary  Events that were lost, damage, and a clock without times: whether
--   numbers can be believed.
-- @read     matters 1: so much is lost, or unknown, that no verdict is given.
-- @grain    one row
-- @filters  range
-- @column   gaps_count INTEGER times that the ring buffer overran; NULL = none,
--   or their events are not counted
-- @column   lost_count INTEGER events that are lost; NULL likewise
-- @column   unknown_gaps_count INTEGER times that it overran, and nobody knows
--   how many events that cost; NULL = none
-- @column   lost_ratio REAL lost events over all that happened
-- @column   unread_count INTEGER records whose event or fields are not known;
--   NULL = none
-- @column   lacking TEXT fields that answers are made of and no record has;
--   NULL = none
-- @column   state TEXT damaged, read only in part; NULL = whole
-- @column   ticks_clock TEXT the trace clock, where it counts ticks and not ns;
--   NULL = it tells the time
-- @column   matters INTEGER 1: damaged, empty, without times or such fields, or
--   more is lost or not read than wb_rule lets pass
-- @column   duration_ns INTEGER length of the time of interest; NULL = its
--   clock does not tell
WITH
  gap AS (
    SELECT
      count(*) AS gaps_count,
      sum(l.count) AS lost_count,
      count(*) - count(l.count) AS unknown_count
    FROM raw_lost_events AS l
  ),
  known AS (
    SELECT
      (
        SELECT CAST(m.value AS INTEGER)
        FROM raw_meta AS m
        WHERE m.key = 'events_count'
      ) AS events_count,
      EXISTS (
        SELECT 1 FROM raw_meta AS m WHERE m.key = 'damaged' AND m.value = 1
      ) AS is_damaged,
      -- How long a tick is nothing tells: one of uptime is 1/USER_HZ s, which
      -- differs by machine, and it was a clock of ns in older kernels.
      (
        SELECT coalesce(c.value, 'unknown')
        FROM raw_meta AS m
        LEFT JOIN raw_meta AS c ON c.key = 'clock'
        WHERE m.key = 'clock_unit' AND m.value = 'ticks'
      ) AS ticks_clock,
      (
        SELECT sum(n.value)
        FROM raw_ingest_stats AS n
        WHERE not_read!(n) AND n.severity IS NOT 'data_loss'
      ) AS unread_count,
      (
        SELECT group_concat(f.field || ' of ' || f.event, ', ')
        FROM _lacking_field AS f
      ) AS lacking
  )
SELECT
  CASE WHEN g.gaps_count > 0 AND g.unknown_count = 0 THEN g.gaps_count END
    AS gaps_count,
  CASE WHEN g.gaps_count > 0 AND g.unknown_count = 0 THEN g.lost_count END
    AS lost_count,
  CASE WHEN g.unknown_count > 0 THEN g.gaps_count END AS unknown_gaps_count,
  1.0 * g.lost_count / (k.events_count + g.lost_count) AS lost_ratio,
  k.unread_count, k.lacking,
  CASE WHEN k.is_damaged THEN 'damaged, and was read only in part' END AS state,
  k.ticks_clock,
  CASE
    WHEN k.is_damaged OR g.unknown_count > 0 OR k.lacking IS NOT NULL THEN 1
    WHEN k.ticks_clock IS NOT NULL OR k.events_count = 0 THEN 1
    WHEN coalesce(g.lost_count, 0) + coalesce(k.unread_count, 0)
      > v.lost_most_ratio * (k.events_count + coalesce(g.lost_count, 0))
      THEN 1
    ELSE 0
  END AS matters,
  CASE WHEN k.ticks_clock IS NULL THEN b.asked_ns END AS duration_ns
FROM gap AS g
CROSS JOIN known AS k
CROSS JOIN wb_rule AS v
CROSS JOIN wb_bounds AS b
ORDER BY matters;

-- @view     _lacking_field
-- @summary  Fields that answers are made of and that no record of their event
--   has: the kernel has given them other names, or the event's format was not
--   understood.
-- @grain    event, field; order event, field
-- @column   event TEXT name of the event
-- @column   field TEXT name of the field, that of the newest kernel known
CREATE VIEW _lacking_field AS
SELECT f.event, f.field
FROM (
  SELECT 'balance_dirty_pages' AS event, 'bdi' AS field
  FROM (SELECT 1 FROM raw_balance_dirty_pages LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_balance_dirty_pages AS e WHERE e.bdi IS NOT NULL
  )
  UNION ALL
  SELECT 'balance_dirty_pages', 'pause'
  FROM (SELECT 1 FROM raw_balance_dirty_pages LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_balance_dirty_pages AS e WHERE e.pause IS NOT NULL
  )
  UNION ALL
  SELECT 'balance_dirty_pages', 'dirtied'
  FROM (SELECT 1 FROM raw_balance_dirty_pages LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_balance_dirty_pages AS e WHERE e.dirtied IS NOT NULL
  )
  UNION ALL
  SELECT 'balance_dirty_pages', 'task_ratelimit'
  FROM (SELECT 1 FROM raw_balance_dirty_pages LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1
    FROM raw_balance_dirty_pages AS e
    WHERE e.task_ratelimit IS NOT NULL
  )
  UNION ALL
  SELECT 'global_dirty_state', 'nr_dirty'
  FROM (SELECT 1 FROM raw_global_dirty_state LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_global_dirty_state AS e WHERE e.nr_dirty IS NOT NULL
  )
  UNION ALL
  SELECT 'global_dirty_state', 'dirty_limit'
  FROM (SELECT 1 FROM raw_global_dirty_state LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_global_dirty_state AS e WHERE e.dirty_limit IS NOT NULL
  )
  UNION ALL
  SELECT 'block_rq_issue', 'nr_sector'
  FROM (SELECT 1 FROM raw_block_rq_issue LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_block_rq_issue AS e WHERE e.nr_sector IS NOT NULL
  )
  UNION ALL
  SELECT 'block_rq_complete', 'nr_sector'
  FROM (SELECT 1 FROM raw_block_rq_complete LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_block_rq_complete AS e WHERE e.nr_sector IS NOT NULL
  )
  UNION ALL
  SELECT 'block_rq_complete', 'rwbs'
  FROM (SELECT 1 FROM raw_block_rq_complete LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_block_rq_complete AS e WHERE e.rwbs IS NOT NULL
  )
  UNION ALL
  SELECT 'sched_switch', 'prev_state'
  FROM (SELECT 1 FROM raw_sched_switch LIMIT 1)
  WHERE NOT EXISTS (
    SELECT 1 FROM raw_sched_switch AS e WHERE e.prev_state IS NOT NULL
  )
) AS f;
