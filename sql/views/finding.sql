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
-- @column   confidence TEXT measured or inferred
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
