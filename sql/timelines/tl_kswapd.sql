-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_kswapd
-- @title    Cycles of kswapd
-- @order    120
-- @group    Reclaim: Who freed memory, and whether reclaim had to write pages
--   itself.
-- @track    kswapd node *: kswapd of this node is awake
-- @summary  When kswapd of each node was awake, and what it did.
-- @grain    cycle; order ts
-- @events   vmscan:mm_vmscan_kswapd_wake
-- @optional vmscan:mm_vmscan_kswapd_sleep, vmscan:mm_vmscan_lru_shrink_inactive
-- @column   arg_why TEXT what it did
-- @column   arg_tid INTEGER thread
-- @column   arg_comm TEXT its name then
-- @column   arg_node INTEGER memory node
-- @column   arg_wakes_count INTEGER passes over the node that began
-- @column   arg_order INTEGER largest order of pages that were wanted
-- @column   arg_scanned_count INTEGER pages scanned on inactive lists; NULL =
--   not recorded
-- @column   arg_reclaimed_count INTEGER pages of them that were freed
-- @column   arg_writes_count INTEGER folios given away to be written
-- @column   arg_cut TEXT start or end: under way when the trace began or ended;
--   NULL = neither
CREATE VIEW tl_kswapd AS
SELECT
  c.ts,
  c.end_ts - c.ts AS dur,
  'Writeback/Reclaim/kswapd node ' || c.node AS track,
  'awake' AS name,
  NULL AS value,
  NULL AS unit,
  c.node AS rank,
  printf(
    'awake for %.1f ms', (c.end_ts - c.ts) / 1e6
  ) || coalesce(
    ': ' || c.reclaimed_count || ' of ' || c.scanned_count || ' pages freed',
    ''
  ) AS arg_why,
  c.tid AS arg_tid,
  c.comm AS arg_comm,
  c.node AS arg_node,
  c.wakes_count AS arg_wakes_count,
  c.order_max AS arg_order,
  c.scanned_count AS arg_scanned_count,
  c.reclaimed_count AS arg_reclaimed_count,
  c.writes_count AS arg_writes_count,
  c.cut AS arg_cut
FROM reclaim_kswapd AS c;
