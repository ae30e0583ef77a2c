-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_block_depth
-- @title    Depth of the queues
-- @order    111
-- @group    Block requests
-- @track    * requests queued [requests]: how many stand in the I/O scheduler
-- @track    * requests in the device [requests]: how many the disk has
-- @summary  How many requests of each disk are queued, and in the device.
-- @grain    change of one curve; order ts
-- @sorted
-- @events   block:block_rq_issue, block:block_rq_complete
-- @optional block:block_rq_insert
-- @cost     190
CREATE VIEW tl_block_depth AS
WITH
  border AS (
    SELECT q.device, ' requests queued' AS part, q.ts, 1 AS step
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NULL OR q.issue_ts > q.ts
    UNION ALL
    SELECT q.device, ' requests queued', coalesce(q.issue_ts, q.end_ts), -1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NULL OR q.issue_ts > q.ts
    UNION ALL
    SELECT q.device, ' requests in the device', q.issue_ts, 1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
    UNION ALL
    SELECT q.device, ' requests in the device', q.end_ts, -1
    FROM wb_wait_request AS q
    WHERE q.issue_ts IS NOT NULL
  ),
  change AS (
    SELECT b.device, b.part, b.ts, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.device, b.part, b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Block requests/'
    || replace(
      replace(coalesce(d.device || ' ', '') || c.device, '\', '\\'),
      '/',
      '\/'
    ) || c.part AS track,
  NULL AS name,
  sum(c.step) OVER (
    PARTITION BY c.device, c.part ORDER BY c.ts ROWS UNBOUNDED PRECEDING
  ) AS value,
  'requests' AS unit
FROM change AS c
LEFT JOIN wb_device AS d ON d.bdi = c.device;
