-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_kswapd
-- @title    Cycles of kswapd
-- @order    120
-- @group    Reclaim: Who freed memory, and whether reclaim had to write pages
--   itself.
-- @track    kswapd node *: kswapd of this node is awake
-- @summary  When kswapd of each node was awake, and what it did.
-- @grain    cycle; order ts
-- @needs    reclaim_kswapd, wb_task_label
-- @events   vmscan:mm_vmscan_kswapd_wake
-- @optional vmscan:mm_vmscan_kswapd_sleep, vmscan:mm_vmscan_lru_shrink_inactive
CREATE VIEW tl_kswapd AS
SELECT
  c.ts,
  c.end_ts - c.ts AS dur,
  'Writeback/Reclaim/kswapd node ' || c.node AS track,
  'awake' AS name,
  NULL AS value,
  NULL AS unit,
  coalesce(k.args, 'tid=' || c.tid)
    || '|node=' || c.node
    || '|wakes_count=' || c.wakes_count
    || '|order=' || coalesce(c.order_max, '')
    || '|scanned_count=' || coalesce(c.scanned_count, '')
    || '|reclaimed_count=' || coalesce(c.reclaimed_count, '')
    || '|writes_count=' || coalesce(c.writes_count, '')
    || '|cut=' || coalesce(c.cut, '') AS args,
  c.node AS rank
FROM reclaim_kswapd AS c
LEFT JOIN wb_task_label AS k ON k.task_id = c.task_id;
