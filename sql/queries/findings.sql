-- SPDX-License-Identifier: Apache-2.0
-- What is wrong.

-- @query    findings
-- @title    What is wrong, what it cost, what to change
-- @summary  The findings of a run in words: by severity, then by the time that
--   tasks lost.
-- @read     Each has the commands that show its numbers. `explain` tells the
--   same with the advice in full. severe: somebody pays for what others do, or
--   the kernel fails; warning: tasks lost time that a change can save; note:
--   worth knowing.
-- @filters  range
-- @grain    finding; order as listed
-- @keys     id
-- @first    severity, text, cost_task_ns
-- @column   confidence TEXT measured, or inferred from what is missing
-- @column   advice TEXT what to change; NULL = nothing, or the trace is not
--   whole
-- @column   first_ts INTEGER ns, trace clock, start of the first wait; NULL =
--   it is not about a part of the time
-- @column   last_ts INTEGER ns, end of the last
-- @source   docs/findings.md
SELECT
  f.id, f.severity, f.confidence, f.cost_task_ns, f.text, f.evidence, f.advice,
  f.first_ts, f.last_ts
FROM wb_finding AS f
ORDER BY f.place;
