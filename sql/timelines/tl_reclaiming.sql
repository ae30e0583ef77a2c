-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_reclaiming
-- @title    Tasks in reclaim
-- @order    119
-- @group    Reclaim: How many tasks free memory or are held up in that, kswapd
--   without. Below: who, when kswapd was awake, and whether reclaim had to
--   write pages itself.
-- @parent
-- @sorted
-- @summary  How many tasks are in reclaim at a time.
-- @grain    change; order ts
-- @events   vmscan:mm_vmscan_direct_reclaim_begin
--   |vmscan:mm_vmscan_memcg_reclaim_begin|vmscan:mm_vmscan_node_reclaim_begin
--   |vmscan:mm_vmscan_throttled
-- @cost     42
CREATE VIEW tl_reclaiming AS
WITH
  border AS (
    SELECT p.from_ts AS ts, 1 AS step
    FROM wb_wait_piece AS p
    JOIN wb_wait AS w ON w.wait_id = p.wait_id
    WHERE w.kind IN ('direct reclaim', 'memcg reclaim', 'reclaim throttle')
    UNION ALL
    SELECT p.to_ts, -1
    FROM wb_wait_piece AS p
    JOIN wb_wait AS w ON w.wait_id = p.wait_id
    WHERE w.kind IN ('direct reclaim', 'memcg reclaim', 'reclaim throttle')
  ),
  change AS (
    SELECT b.ts, sum(b.step) AS step
    FROM border AS b
    GROUP BY b.ts
  )
SELECT
  c.ts,
  NULL AS dur,
  'Writeback/Reclaim' AS track,
  NULL AS name,
  sum(c.step) OVER (ORDER BY c.ts ROWS UNBOUNDED PRECEDING) AS value,
  'tasks' AS unit
FROM change AS c;
