-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_vmstat
-- @summary  What the counters of /proc/vmstat gained during the run.
-- @grain    counter; order name
-- @needs    raw_vmstat
-- @column   name TEXT counter
-- @column   before_value INTEGER as in the file, most of them pages
-- @column   after_value INTEGER as in the file
-- @column   gained_count INTEGER after minus before; NULL when one is missing
CREATE VIEW wb_vmstat AS
SELECT
  v.name,
  max(CASE WHEN v.sample = 'before' THEN v.value END) AS before_value,
  max(CASE WHEN v.sample = 'after' THEN v.value END) AS after_value,
  max(CASE WHEN v.sample = 'after' THEN v.value END)
    - max(CASE WHEN v.sample = 'before' THEN v.value END) AS gained_count
FROM raw_vmstat AS v
GROUP BY v.name;
