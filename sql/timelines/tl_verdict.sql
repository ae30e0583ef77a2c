-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_verdict
-- @title    The verdict
-- @order    1
-- @parent
-- @spanning
-- @sorted
-- @track    Writeback: what is wrong, the costliest first, or that nothing is,
--   and what to do about the first; wbscope explain says it with evidence
-- @summary  The findings of the run that matter most, in words, over the time
--   that they are about.
-- @grain    finding, and what to do; order rank
-- @column   arg_text TEXT what is wrong, with the numbers; NULL = what to do
-- @column   arg_advice TEXT what to change; NULL = nothing
-- @column   arg_evidence TEXT commands that show the numbers
-- @column   arg_rule TEXT rule of sql/findings; NULL = what to do
-- @column   arg_severity TEXT severe, warning or ok
-- @column   arg_confidence TEXT measured, inferred or cannot tell
-- @column   arg_cost_task_ns INTEGER time that all tasks together lost to it
CREATE VIEW tl_verdict AS
WITH
  told AS (
    SELECT f.*
    FROM wb_finding AS f
    WHERE f.place = 1
      OR (f.severity IN ('severe', 'warning', 'ok') AND f.place <= 3)
  ),
  -- One row for each, the first on top, and below it what to do.
  line AS (
    SELECT
      2 * t.place AS place,
      t.severity || ': ' || t.text
        || CASE t.confidence WHEN 'measured' THEN ''
          ELSE ' (' || t.confidence || ')'
        END AS name,
      t.text, t.advice, t.evidence, t.id, t.severity, t.confidence,
      t.cost_task_ns
    FROM told AS t
    UNION ALL
    SELECT
      2 * t.place + 1, 'to do: ' || t.advice, NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM told AS t
    WHERE t.advice IS NOT NULL
      AND t.place = (SELECT min(o.place) FROM told AS o)
  )
SELECT
  b.first_ts AS ts,
  -- All of the run, whatever it is about; one event alone has to be seen, too.
  max(b.last_ts - b.first_ts, u.ms_ns) AS dur,
  'Writeback' AS track,
  l.name,
  NULL AS value,
  NULL AS unit,
  l.place AS rank,
  l.text AS arg_text,
  l.advice AS arg_advice,
  l.evidence AS arg_evidence,
  l.id AS arg_rule,
  l.severity AS arg_severity,
  l.confidence AS arg_confidence,
  l.cost_task_ns AS arg_cost_task_ns
FROM line AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
ORDER BY l.place;
