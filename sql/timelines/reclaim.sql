-- SPDX-License-Identifier: Apache-2.0
-- Reclaim, drawn.

-- @timeline tl_reclaim_writes
-- @title    nr_vmscan_write
-- @order    122
-- @group    Reclaim
-- @track    write/s *: folios that reclaim itself sent to be written
--   (nr_vmscan_write), of each second, by zone, by who reclaimed and by what
--   the folios were; not all reach a device: in the group vmstat, pswpout was
--   written to swap, swpout_zero was zero-filled, zswpout went to zswap
-- @track    vmscan_write *: the same, summed up, by zone
-- @summary  Folios that reclaim sent to writeback, by zone: sum, per second.
-- @grain    sample of one curve; order ts
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage|
--   vmscan:mm_vmscan_reclaim_writeback
CREATE VIEW tl_reclaim_writes AS
WITH
  zoned AS (
    SELECT
      r.ts,
      r.zone || coalesce(' node ' || r.node, '') AS place,
      -- Short, for the UI cuts long names: the node where there are several.
      r.zone
        || coalesce(CASE WHEN n.nodes_count > 1 THEN ':' || r.node END, '')
        || ' ' || r.reclaimer || ' ' || r.kind AS who
    FROM reclaim_writeback AS r
    CROSS JOIN (
      SELECT count(DISTINCT w.node) AS nodes_count
      FROM reclaim_writeback AS w
      WHERE w.outcome = 'submitted'
    ) AS n
    WHERE r.outcome = 'submitted'
  ),
  summed AS (
    SELECT
      z.ts, z.place,
      count(*) OVER (
        PARTITION BY z.place ORDER BY z.ts RANGE UNBOUNDED PRECEDING
      ) AS folios_so_far
    FROM zoned AS z
  ),
  per_second AS (
    SELECT
      z.who AS place,
      (z.ts - b.first_ts) / u.second_ns AS second_index,
      count(*) AS folios_count
    FROM zoned AS z
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_units AS u
    GROUP BY 1, 2
  ),
  stepped AS (
    SELECT
      p.place, p.second_index, p.folios_count,
      lead(p.second_index) OVER (
        PARTITION BY p.place ORDER BY p.second_index
      ) AS next_index
    FROM per_second AS p
  ),
  -- A second without writes must bring the curve back to zero.
  next_second AS (
    SELECT s.place, s.second_index, s.folios_count FROM stepped AS s
    UNION ALL
    SELECT s.place, s.second_index + 1, 0
    FROM stepped AS s
    WHERE s.next_index IS NULL OR s.next_index > s.second_index + 1
  )
SELECT
  s.ts,
  NULL AS dur,
  'Writeback/Reclaim/vmscan_write ' || s.place AS track,
  NULL AS name,
  max(s.folios_so_far) AS value,
  'folios' AS unit
FROM summed AS s
GROUP BY s.ts, s.place
UNION ALL
SELECT
  b.first_ts + n.second_index * u.second_ns,
  NULL,
  'Writeback/Reclaim/write\/s ' || n.place,
  NULL, n.folios_count,
  'folios/s'
FROM next_second AS n
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u;

-- @timeline tl_reclaim_dirty
-- @title    Dirty pages that reclaim met
-- @order    123
-- @group    Reclaim
-- @track    nr_dirty node * total: file pages that reclaim met at the end of
--   this node's lists and that were dirty or being written, summed up
-- @track    nr_immediate node * total: pages that kswapd met again while their
--   writeback, which it waits for, went on, summed up
-- @track    immediate reclaim * total: dirty pages that reclaim did not write
--   but marked to be freed as soon as they are written, by zone, summed up
--   (the counter nr_vmscan_immediate_reclaim; of a patched kernel)
-- @summary  Dirty pages that reclaim met, by node, and those to be reclaimed
--   immediately, by zone where the kernel tells it.
-- @grain    sample of one curve; order ts
-- @sorted
-- @events   vmscan:mm_vmscan_lru_shrink_inactive
--   |vmscan:mm_vmscan_reclaim_writeback
CREATE VIEW tl_reclaim_dirty AS
WITH
  met AS (
    SELECT
      s.seq, s.ts,
      'nr_dirty node ' || s.nid AS curve,
      s.nr_dirty AS pages
    FROM raw_mm_vmscan_lru_shrink_inactive AS s
    WHERE s.nr_dirty > 0
    UNION ALL
    SELECT s.seq, s.ts, 'nr_immediate node ' || s.nid, s.nr_immediate
    FROM raw_mm_vmscan_lru_shrink_inactive AS s
    WHERE s.nr_immediate > 0
    UNION ALL
    SELECT
      y.seq, y.ts,
      'immediate reclaim node ' || y.node || ' ' || y.zone,
      y.pages_count
    FROM reclaim_writeback AS y
    WHERE y.outcome = 'declined'
  )
SELECT
  m.ts,
  NULL AS dur,
  'Writeback/Reclaim/' || m.curve || ' total' AS track,
  NULL AS name,
  sum(m.pages) OVER (
    PARTITION BY m.curve ORDER BY m.seq ROWS UNBOUNDED PRECEDING
  ) AS value,
  'pages' AS unit
FROM met AS m;

-- @timeline tl_kswapd
-- @title    Cycles of kswapd
-- @order    120
-- @group    Reclaim: Who freed memory, and whether reclaim had to write pages
--   itself.
-- @track    kswapd node *: kswapd of this node is awake
-- @summary  When kswapd of each node was awake, and what it did: from being
--   woken to its next full sleep. Short naps between two passes are part of it.
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
-- @source   mm/vmscan.c kswapd(), kswapd_try_to_sleep()
-- @cost     55
CREATE VIEW tl_kswapd AS
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
      lag(s.is_end) OVER (PARTITION BY s.nid ORDER BY s.seq) AS prev_is_end
    FROM steps AS s
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
  ),
  told AS (
    SELECT
      coalesce(c.first_ts, b.first_ts) AS ts,
      coalesce(c.end_ts, b.last_ts) AS end_ts,
      c.nid AS node,
      c.tid,
      coalesce(t.comm, 'tid ' || c.tid) AS comm,
      c.wakes_count, c.order_max, d.scanned_count, d.reclaimed_count,
      d.writes_count,
      CASE
        WHEN c.first_ts IS NULL THEN 'start'
        WHEN c.end_ts IS NULL THEN 'end'
      END AS cut
    FROM cycle AS c
    CROSS JOIN wb_bounds AS b
    LEFT JOIN done AS d ON d.cycle_seq = c.seq
    LEFT JOIN wb_task AS t ON task_of!(t, c)
  )
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
FROM told AS c;

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

-- @timeline tl_reclaiming
-- @title    Tasks in reclaim
-- @order    119
-- @group    Reclaim: How many tasks reclaim or are throttled in reclaim, kswapd
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

-- @timeline tl_zone
-- @title    Free pages of each zone
-- @order    124
-- @group    Zones: Free pages of each memory zone against its watermarks
--   (/proc/zoneinfo), sampled by wbscope record every ten samples. Below low
--   kswapd is woken, up to high it works; below min tasks reclaim themselves.
-- @level    One zone
-- @track    free [pages]: pages that nobody uses
-- @track    min [pages]: watermark
-- @track    low [pages]: watermark
-- @track    high [pages]: watermark
-- @summary  Free pages of each zone against its watermarks.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_zone AS
SELECT
  z.ts,
  NULL AS dur,
  'Writeback/Zones/node ' || z.node || ' '
    || replace(replace(z.zone, '\', '\\'), '/', '\/') || '/' || z.name AS track,
  NULL AS name,
  z.value,
  'pages' AS unit
FROM raw_zoneinfo AS z
WHERE z.sample = 'sampled'
  AND z.zone IS NOT NULL
  AND z.name IN ('free', 'min', 'low', 'high')
  -- Zones without pages have lines, too.
  AND EXISTS (
    SELECT 1 FROM raw_zoneinfo AS p
    WHERE p.sample = 'sampled'
      AND p.node = z.node
      AND p.zone = z.zone
      AND p.name = 'managed'
      AND p.value > 0
  );
