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
-- @events   vmscan:mm_vmscan_direct_reclaim_begin
--   |vmscan:mm_vmscan_memcg_reclaim_begin|vmscan:mm_vmscan_node_reclaim_begin
-- @optional vmscan:mm_vmscan_lru_shrink_inactive
-- @column   arg_why TEXT what it did
-- @column   arg_tid INTEGER thread
-- @column   arg_comm TEXT its name then
-- @column   arg_what TEXT direct_reclaim, node_reclaim, memcg_reclaim or the
--   event that tells
-- @column   arg_scanned_count INTEGER pages scanned; NULL = not recorded
-- @column   arg_reclaimed_count INTEGER pages of them that were freed
-- @column   arg_writes_count INTEGER folios given away to be written
-- @column   arg_cut TEXT start or end: under way when the trace began or ended;
--   NULL = neither
-- @cost     36
CREATE VIEW tl_direct_reclaim AS
WITH
  -- A span has the number of the event that begins it, and so does what was
  -- done in it: grouped, not joined, because there are many of both.
  part AS (
    SELECT
      w.seq, w.ts, w.end_ts, w.tid, w.comm, w.task_id, w.kind, w.what, w.cut,
      NULL AS scanned_count,
      NULL AS reclaimed_count,
      0 AS writes_count
    FROM wb_wait AS w
    WHERE w.kind IN ('direct reclaim', 'memcg reclaim')
    UNION ALL
    SELECT
      r.invocation, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      r.scanned_count, r.reclaimed_count,
      CASE WHEN r.work = 'write' THEN 1 ELSE 0 END
    FROM reclaim_work AS r
    WHERE r.reclaimer IN ('direct', 'memcg') AND r.invocation IS NOT NULL
  ),
  span AS (
    SELECT
      max(p.ts) AS ts,
      max(p.end_ts) AS end_ts,
      max(p.tid) AS tid,
      max(p.comm) AS comm,
      max(p.task_id) AS task_id,
      max(p.kind) AS kind,
      max(p.what) AS what,
      max(p.cut) AS cut,
      sum(p.scanned_count) AS scanned_count,
      sum(p.reclaimed_count) AS reclaimed_count,
      sum(p.writes_count) AS writes_count
    FROM part AS p
    GROUP BY p.seq
  )
SELECT
  s.ts,
  s.end_ts - s.ts AS dur,
  'Writeback/Reclaim/' || s.kind AS track,
  s.comm AS name,
  NULL AS value,
  NULL AS unit,
  printf('%s frees memory for %.1f ms', s.comm, (s.end_ts - s.ts) / 1e6)
    || coalesce(
      ': ' || s.reclaimed_count || ' of ' || s.scanned_count || ' pages',
      ''
    ) AS arg_why,
  s.tid AS arg_tid,
  s.comm AS arg_comm,
  s.what AS arg_what,
  s.scanned_count AS arg_scanned_count,
  s.reclaimed_count AS arg_reclaimed_count,
  s.writes_count AS arg_writes_count,
  s.cut AS arg_cut
FROM span AS s
WHERE s.kind IS NOT NULL;
