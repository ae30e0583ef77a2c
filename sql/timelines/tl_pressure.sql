-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_pressure
-- @title    Time lost for want of a resource
-- @order    82
-- @group    Pressure: The kernel's own measure of waits (PSI), sampled by
--   wbscope record. A point shows the time up to the next one.
-- @track    * some [share]: time in which a task of a CPU waited, mean of CPUs
--   by their time not idle
-- @track    * full [share]: time in which it did and no other task could run
-- @summary  Shares of the time in which tasks waited for CPU, I/O and memory.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_pressure AS
WITH
  curve(place, name) AS (
    SELECT 0, ' some'
    UNION ALL SELECT 1, ' full'
  )
SELECT
  s.ts - s.dur_ns AS ts,
  NULL AS dur,
  'Writeback/Pressure/' || replace(replace(s.resource, '\', '\\'), '/', '\/')
    || c.name AS track,
  NULL AS name,
  min(
    1.0,
    1.0 * CASE c.place WHEN 0 THEN s.some_ns ELSE s.full_ns END / s.dur_ns
  ) AS value,
  'ratio' AS unit
FROM wb_pressure_sample AS s
CROSS JOIN curve AS c
WHERE c.place = 0 OR s.full_ns IS NOT NULL
UNION ALL
-- Behind the last sample nothing is known.
SELECT
  max(s.ts),
  NULL,
  'Writeback/Pressure/' || replace(replace(s.resource, '\', '\\'), '/', '\/')
    || c.name,
  NULL, 0,
  'ratio'
FROM wb_pressure_sample AS s
CROSS JOIN curve AS c
WHERE c.place = 0 OR s.full_ns IS NOT NULL
GROUP BY s.resource, c.name;
