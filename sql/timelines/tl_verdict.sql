-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_verdict
-- @title    The verdict
-- @order    1
-- @parent
-- @spanning
-- @track    Writeback: what is wrong, the costliest first, or that nothing is;
--   wbscope explain says it with advice and evidence
-- @summary  The findings of the run that matter most, in words, over the time
--   that they are about.
-- @grain    finding; order place
-- @needs    wb_finding, wb_bounds
-- @column   arg_text TEXT what is wrong, with the numbers
-- @column   arg_advice TEXT what to change; NULL = nothing
-- @column   arg_evidence TEXT commands that show the numbers
-- @column   arg_rule TEXT rule of sql/findings
-- @column   arg_severity TEXT severe, warning or ok
-- @column   arg_confidence TEXT measured or inferred
-- @column   arg_cost_task_ns INTEGER time that all tasks together lost to it
CREATE VIEW tl_verdict AS
SELECT
  b.first_ts AS ts,
  -- All of the run, whatever it is about: one row for each, the first on top.
  b.last_ts - b.first_ts AS dur,
  'Writeback' AS track,
  f.text AS name,
  NULL AS value,
  NULL AS unit,
  f.place AS rank,
  f.text AS arg_text,
  f.advice AS arg_advice,
  f.evidence AS arg_evidence,
  f.id AS arg_rule,
  f.severity AS arg_severity,
  f.confidence AS arg_confidence,
  f.cost_task_ns AS arg_cost_task_ns
FROM wb_finding AS f
CROSS JOIN wb_bounds AS b
WHERE f.severity IN ('severe', 'warning', 'ok') AND f.place <= 3
ORDER BY f.place;
