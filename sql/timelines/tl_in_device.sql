-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_in_device
-- @title    Requests that the disks have
-- @order    109
-- @group    Block requests: How many requests the disks have at a time. Below:
--   requests of each disk, how long each stood in the I/O scheduler's queue,
--   and how long the disk took. Overlapping requests are rows of one track.
-- @parent
-- @sorted
-- @summary  How many requests all disks have at a time.
-- @grain    change; order ts
-- @events   block:block_rq_issue, block:block_rq_complete
-- @cost     86
CREATE VIEW tl_in_device AS
WITH
  border AS (
    SELECT q.issue_ts AS ts, 1 AS step
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
    UNION ALL
    SELECT q.end_ts, -1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
  ),
  change AS (
    SELECT b.ts, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Block requests' AS track,
  NULL AS name,
  sum(c.step) OVER (ORDER BY c.ts ROWS UNBOUNDED PRECEDING) AS value,
  'requests' AS unit
FROM change AS c;
