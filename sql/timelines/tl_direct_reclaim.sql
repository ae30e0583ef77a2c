-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_direct_reclaim
-- @title    Direct reclaim
-- @order    121
-- @group    Reclaim
-- @track    direct reclaim: tasks that had to free memory themselves
-- @track    memcg reclaim: tasks that met the limit of their memory cgroup
-- @summary  Tasks in direct and memory cgroup reclaim, and what they did.
-- @grain    span; order ts
-- @flat
-- @needs    wb_wait, reclaim_work, wb_task_label
-- @events   vmscan:mm_vmscan_direct_reclaim_begin
--   |vmscan:mm_vmscan_memcg_reclaim_begin|vmscan:mm_vmscan_node_reclaim_begin
-- @optional vmscan:mm_vmscan_lru_shrink_inactive
CREATE VIEW tl_direct_reclaim AS
WITH
  done AS (
    SELECT
      r.invocation,
      sum(r.scanned_count) AS scanned_count,
      sum(r.reclaimed_count) AS reclaimed_count,
      sum(CASE WHEN r.work = 'write' THEN 1 ELSE 0 END) AS writes_count
    FROM reclaim_work AS r
    WHERE r.reclaimer IN ('direct', 'memcg')
    GROUP BY r.invocation
  )
SELECT
  w.ts,
  w.end_ts - w.ts AS dur,
  'Writeback/Reclaim/' || w.kind AS track,
  w.comm AS name,
  NULL AS value,
  NULL AS unit,
  coalesce(k.args, 'tid=' || w.tid)
    || '|what="' || w.what
    || '"|scanned_count=' || coalesce(d.scanned_count, '')
    || '|reclaimed_count=' || coalesce(d.reclaimed_count, '')
    || '|writes_count=' || coalesce(d.writes_count, '')
    || '|cut=' || coalesce(w.cut, '') AS args
FROM wb_wait AS w
LEFT JOIN done AS d ON d.invocation = w.seq
LEFT JOIN wb_task_label AS k ON k.task_id = w.task_id
WHERE w.kind IN ('direct reclaim', 'memcg reclaim');
