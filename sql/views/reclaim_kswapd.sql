-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_kswapd
-- @summary  Cycles of kswapd: from being woken to its next full sleep. Short
--   naps between two passes are part of a cycle.
-- @grain    cycle; order seq
-- @needs    raw_mm_vmscan_kswapd_wake, raw_mm_vmscan_kswapd_sleep,
--   reclaim_work, wb_task, wb_bounds
-- @events   vmscan:mm_vmscan_kswapd_wake
-- @optional vmscan:mm_vmscan_kswapd_sleep, vmscan:mm_vmscan_lru_shrink_inactive
-- @column   seq INTEGER of its first event
-- @column   ts INTEGER ns, woken; the trace's begin where that was before it
-- @column   end_ts INTEGER ns, asleep; the trace's end where it was not
-- @column   node INTEGER memory node
-- @column   tid INTEGER the kswapd
-- @column   comm TEXT its name
-- @column   task_id INTEGER of wb_task
-- @column   wakes_count INTEGER passes over the node that began
-- @column   order_max INTEGER largest order of pages that were wanted
-- @column   scanned_count INTEGER pages scanned on inactive lists
-- @column   reclaimed_count INTEGER pages of them that were freed
-- @column   writes_count INTEGER folios given away to be written
-- @column   cut TEXT start or end: under way when the trace began or ended
-- @source   mm/vmscan.c kswapd(), kswapd_try_to_sleep()
-- @materialize
CREATE VIEW reclaim_kswapd AS
WITH
  steps AS (
    SELECT w.nid, w.tid, w.seq, w.ts, 0 AS is_end, w."order" AS page_order
    FROM raw_mm_vmscan_kswapd_wake AS w
    UNION ALL
    SELECT s.nid, s.tid, s.seq, s.ts, 1, NULL
    FROM raw_mm_vmscan_kswapd_sleep AS s
  ),
  followed AS (
    SELECT
      s.*,
      lag(s.is_end) OVER node AS prev_is_end,
      lead(s.is_end) OVER node AS next_is_end,
      lead(s.ts) OVER node AS next_ts
    FROM steps AS s
    WINDOW node AS (PARTITION BY s.nid ORDER BY s.seq)
  ),
  numbered AS (
    SELECT
      f.*,
      max(CASE
        WHEN f.prev_is_end IS NULL OR (f.is_end = 0 AND f.prev_is_end = 1)
          THEN f.seq
      END) OVER (PARTITION BY f.nid ORDER BY f.seq ROWS UNBOUNDED PRECEDING)
        AS cycle_seq
    FROM followed AS f
    -- A second sleep in a row says nothing new.
    WHERE f.is_end = 0 OR f.prev_is_end IS NULL OR f.prev_is_end = 0
  ),
  cycle AS (
    SELECT
      n.cycle_seq AS seq,
      n.nid,
      min(n.tid) AS tid,
      min(CASE WHEN n.is_end = 0 THEN n.ts END) AS first_ts,
      max(CASE WHEN n.is_end = 1 THEN n.ts END) AS end_ts,
      sum(1 - n.is_end) AS wakes_count,
      max(n.page_order) AS order_max
    FROM numbered AS n
    GROUP BY n.cycle_seq, n.nid
  ),
  done AS (
    SELECT
      n.cycle_seq,
      sum(r.scanned_count) AS scanned_count,
      sum(r.reclaimed_count) AS reclaimed_count,
      sum(CASE WHEN r.work = 'write' THEN 1 ELSE 0 END) AS writes_count
    FROM reclaim_work AS r
    JOIN numbered AS n ON n.seq = r.invocation
    WHERE r.reclaimer = 'kswapd'
    GROUP BY n.cycle_seq
  )
SELECT
  c.seq,
  coalesce(c.first_ts, b.first_ts) AS ts,
  coalesce(c.end_ts, b.last_ts) AS end_ts,
  c.nid AS node,
  c.tid,
  coalesce(t.comm, 'tid ' || c.tid) AS comm,
  t.task_id,
  c.wakes_count,
  c.order_max,
  d.scanned_count,
  d.reclaimed_count,
  d.writes_count,
  CASE
    WHEN c.first_ts IS NULL THEN 'start'
    WHEN c.end_ts IS NULL THEN 'end'
  END AS cut
FROM cycle AS c
CROSS JOIN wb_bounds AS b
LEFT JOIN done AS d ON d.cycle_seq = c.seq
LEFT JOIN wb_task AS t
  ON t.tid = c.tid AND c.seq >= t.from_seq AND c.seq < t.until_seq;
