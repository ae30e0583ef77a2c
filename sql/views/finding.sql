-- SPDX-License-Identifier: Apache-2.0
-- What is wrong, in words: the place of the findings among the views.

-- @view     wb_finding
-- @shared
-- @summary  The findings of the run in words. The runner replaces this view by
--   the rows that sql/findings makes; the text below is the default.
-- @grain    finding; order place
-- @needs
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

-- @view     wb_impossible
-- @shared
-- @summary  Numbers of pages in events that no machine can have.
-- @grain    event, kind of number; order event, what
-- @needs    raw_balance_dirty_pages, raw_global_dirty_state, raw_meminfo,
--   wb_rule, wb_units
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   event TEXT which
-- @column   what TEXT the number, and why it is impossible
-- @column   rows_count INTEGER events with it
-- @column   events_count INTEGER all of these events
-- @source   docs/findings.md
-- @materialize
CREATE VIEW wb_impossible AS
WITH
  machine AS (
    SELECT max(m.value) * u.kib_bytes / u.page_bytes AS pages
    FROM wb_units AS u
    LEFT JOIN raw_meminfo AS m
      ON m.name = 'MemTotal' AND m.sample = 'before' AND m.unit = 'kB'
    GROUP BY u.kib_bytes, u.page_bytes
  ),
  paused AS (
    SELECT
      count(*) AS events_count,
      count(
        CASE WHEN min(r.dirty, coalesce(r.wb_dirty, 0), r."limit") < 0 THEN 1
        END
      ) AS below_count,
      min(min(r.dirty, coalesce(r.wb_dirty, 0), r."limit")) AS lowest,
      count(CASE WHEN r.dirty > m.pages THEN 1 END) AS above_count,
      max(r.dirty) AS highest,
      m.pages
    FROM machine AS m
    CROSS JOIN raw_balance_dirty_pages AS r
  ),
  state AS (
    SELECT
      count(*) AS events_count,
      count(
        CASE WHEN min(g.nr_dirty, g.nr_writeback, g.dirty_limit) < 0 THEN 1 END
      ) AS below_count,
      min(min(g.nr_dirty, g.nr_writeback, g.dirty_limit)) AS lowest,
      count(CASE WHEN g.nr_dirty + g.nr_writeback > m.pages THEN 1 END)
        AS above_count,
      max(g.nr_dirty + g.nr_writeback) AS highest,
      count(
        CASE
          -- It is 0 where low memory is full.
          WHEN g.thresh > 0 AND g.dirty_limit >= v.impossible_factor * g.thresh
            THEN 1
        END
      ) AS far_count,
      -- It stays behind a threshold that was lowered in the run, and falls.
      max(g.dirty_limit) > min(g.dirty_limit)
        OR min(g.dirty_limit) < v.impossible_factor * max(g.thresh)
        AS is_behind,
      max(g.dirty_limit) AS limit_pages,
      min(g.thresh) AS thresh_pages,
      m.pages
    FROM machine AS m
    CROSS JOIN wb_rule AS v
    CROSS JOIN raw_global_dirty_state AS g
  )
SELECT
  'balance_dirty_pages' AS event,
  'a count of pages is below zero (' || p.lowest || ')' AS what,
  p.below_count AS rows_count,
  p.events_count
FROM paused AS p
WHERE p.below_count > 0
UNION ALL
SELECT
  'balance_dirty_pages',
  'more pages are dirty than the machine has (' || p.highest || ' of '
    || p.pages || ')',
  p.above_count,
  p.events_count
FROM paused AS p
WHERE p.above_count > 0
UNION ALL
SELECT
  'global_dirty_state',
  'a count of pages is below zero (' || s.lowest || ')',
  s.below_count,
  s.events_count
FROM state AS s
WHERE s.below_count > 0
UNION ALL
SELECT
  'global_dirty_state',
  'more pages are dirty than the machine has (' || s.highest || ' of '
    || s.pages || ')',
  s.above_count,
  s.events_count
FROM state AS s
WHERE s.above_count > 0
UNION ALL
SELECT
  'global_dirty_state',
  'the limit is fifty times the threshold and more (' || s.limit_pages
    || ' of ' || s.thresh_pages || ' pages)',
  s.far_count,
  s.events_count
FROM state AS s
CROSS JOIN wb_rule AS v
WHERE s.is_behind = 0 AND s.far_count > v.most_ratio * s.events_count;
