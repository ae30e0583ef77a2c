-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_reclaim_writes
-- @title    nr_vmscan_write
-- @order    122
-- @group    Reclaim
-- @track    write/s *: folios that reclaim itself gave away to be
--   written (nr_vmscan_write), of each second, by zone, by who reclaimed and by
--   what the folios were; not all reach a device: in the group vmstat, pswpout
--   was written to swap, swpout_zero was zero-filled, zswpout went to zswap
-- @track    vmscan_write *: the same, summed up, by zone
-- @summary  Folios that reclaim gave away to be written, by zone: sum so far,
--   and per second.
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
    FROM reclaim_write AS r
    CROSS JOIN (
      SELECT count(DISTINCT w.node) AS nodes_count FROM reclaim_write AS w
    ) AS n
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
