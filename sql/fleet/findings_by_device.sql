-- SPDX-License-Identifier: Apache-2.0
-- @query    findings_by_device
-- @title    What is wrong on which device
-- @summary  Time lost in waits by finding and kind of disk: its model, else its
--   name, else the number of its backing device.
-- @grain    device, finding; order lost_ns descending
-- @keys     device, finding
-- @first    lost_ns
-- @column   device TEXT model of the disk, its name, or major:minor
-- @column   finding TEXT id of the finding; NULL = none tells of these waits
-- @column   runs_count INTEGER runs with such waits
-- @column   hosts_count INTEGER their machines
-- @column   stalls_count INTEGER waits
-- @column   lost_ns INTEGER sum of their own times
-- @column   max_ns INTEGER longest
WITH
  named AS (
    SELECT
      l.run, l.host,
      coalesce(d.model, d.device, l.bdi) AS device,
      l.finding, l.stalls_count, l.total_ns, l.max_ns
    FROM lost_time AS l
    LEFT JOIN run_devices AS d ON d.run = l.run AND d.bdi = l.bdi
    WHERE l.bdi IS NOT NULL
  )
SELECT
  n.device, n.finding,
  count(DISTINCT n.run) AS runs_count,
  count(DISTINCT n.host) AS hosts_count,
  CAST(sum(n.stalls_count) AS BIGINT) AS stalls_count,
  CAST(sum(n.total_ns) AS BIGINT) AS lost_ns,
  max(n.max_ns) AS max_ns
FROM named AS n
GROUP BY n.device, n.finding
ORDER BY lost_ns DESC, n.device, n.finding NULLS LAST;
