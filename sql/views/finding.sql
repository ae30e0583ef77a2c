-- SPDX-License-Identifier: Apache-2.0
-- What is wrong, in words, and what must be known before a number is believed:
-- the place of findings and warnings among the views.

-- @view     wb_finding
-- @summary  The findings of the run in words. The runner replaces this view by
--   the rows that sql/findings makes; the text below is the default.
-- @grain    finding; order place
-- @column   place INTEGER 1 = to be told first
-- @column   id TEXT rule, a file of sql/findings
-- @column   title TEXT in a few words
-- @column   severity TEXT severe, warning, note or ok
-- @column   confidence TEXT measured, inferred or cannot tell
-- @column   cost_task_ns INTEGER time that all tasks together lost to it
-- @column   text TEXT what is wrong, with the numbers
-- @column   evidence TEXT commands that show the numbers
-- @column   advice TEXT what to change; NULL = nothing
-- @column   first_ts INTEGER ns, trace clock; NULL = not about a part of time
-- @column   last_ts INTEGER ns, trace clock; NULL likewise
CREATE VIEW wb_finding AS
SELECT
  NULL AS place,
  NULL AS id,
  NULL AS title,
  NULL AS severity,
  NULL AS confidence,
  NULL AS cost_task_ns,
  NULL AS text,
  NULL AS evidence,
  NULL AS advice,
  NULL AS first_ts,
  NULL AS last_ts
FROM (SELECT 0 AS is_told) AS t
WHERE t.is_told = 1;

-- @view     wb_warning
-- @summary  What the reader of an answer must know: the rows of a query's name,
--   and those of '*' with every answer.
-- @grain    warning; order scope, slug
-- @column   scope TEXT name of a query, or *
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_warning AS
-- The files of sql/warnings add their rows.
SELECT '' AS scope, '' AS slug, '' AS message
WHERE 0;

-- @view     wb_impossible
-- @shared
-- @summary  Numbers of pages in events that no machine can have.
-- @grain    event, kind of number; order event, what
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   event TEXT sleeps of throttled tasks, or events of
--   global_dirty_state
-- @column   what TEXT the number, and why it is impossible
-- @column   is_sure INTEGER 0: the threshold may have fallen before the trace
-- @column   rows_count INTEGER of these, with it
-- @column   events_count INTEGER all of these
-- @source   docs/findings.md
-- @materialize
CREATE VIEW wb_impossible AS
WITH
  told AS (
    SELECT
      'sleeps of throttled tasks' AS event,
      min(
        min(c.dirty_bytes),
        coalesce(min(c.wb_dirty_bytes), 0),
        coalesce(min(c.limit_bytes), 0)
      ) / u.page_bytes AS least,
      max(c.dirty_bytes) / u.page_bytes AS most,
      u.memory_bytes / u.page_bytes AS memory,
      NULL AS far
    FROM wb_units AS u
    LEFT JOIN wb_throttle_cause AS c ON 1 = 1
    GROUP BY u.memory_bytes, u.page_bytes
    UNION ALL
    SELECT
      'events of global_dirty_state',
      e.least_pages,
      e.dirty_max_bytes / u.page_bytes,
      u.memory_bytes / u.page_bytes,
      -- It falls slowly to a threshold that was lowered, in the run or before
      -- the part that is asked for. That is 0 where low memory is full.
      CASE
        WHEN p.t0_ns IS NULL
          AND p.t1_ns IS NULL
          AND e.limit_max_bytes = e.limit_min_bytes
          AND e.limit_min_bytes >= v.impossible_factor * e.thresh_max_bytes
          AND e.thresh_max_bytes > 0
          THEN (e.limit_max_bytes / u.page_bytes) || ' of '
            || (e.thresh_max_bytes / u.page_bytes) || ' pages'
      END
    FROM dirty_limits AS e
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
  ),
  found AS (
    SELECT
      t.event,
      CASE
        WHEN t.least < 0 THEN 'A count of pages is below zero (' || t.least
          || ')'
        WHEN t.most > t.memory
          THEN 'More pages are dirty than the machine has (' || t.most || ' of '
            || t.memory || ')'
        ELSE 'The limit is fifty times the threshold and more (' || t.far || ')'
      END AS what,
      t.least < 0 AS is_below,
      t.far, t.memory
    FROM told AS t
    WHERE t.least < 0 OR t.most > t.memory OR t.far IS NOT NULL
  )
SELECT
  f.event, f.what,
  f.far IS NULL AS is_sure,
  -- Counted only where one was found.
  count(
    CASE
      WHEN f.is_below THEN n.least < 0
      WHEN f.far IS NOT NULL THEN 1
      ELSE n.most > f.memory
    END OR NULL
  ) AS rows_count,
  count(*) AS events_count
FROM found AS f
JOIN (
  SELECT
    'sleeps of throttled tasks' AS event,
    min(
      c.dirty_bytes, coalesce(c.wb_dirty_bytes, 0), coalesce(c.limit_bytes, 0)
    ) AS least,
    c.dirty_bytes / o.page_bytes AS most
  FROM wb_units AS o
  CROSS JOIN wb_throttle_cause AS c
  UNION ALL
  SELECT
    'events of global_dirty_state',
    min(g.nr_dirty, g.nr_writeback, coalesce(g.dirty_limit, 0)),
    g.nr_dirty + g.nr_writeback
  FROM raw_global_dirty_state AS g
) AS n ON n.event = f.event
GROUP BY f.event, f.what;
