-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_reclaim_writes
-- @title    nr_vmscan_write
-- @order    50
-- @summary  Folios that reclaim wrote, by zone: sum so far, and per second.
-- @grain    sample of one curve; order ts
-- @needs    reclaim_write, wb_bounds, wb_units
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
CREATE VIEW tl_reclaim_writes AS
WITH
  zoned AS (
    SELECT
      r.ts,
      CASE WHEN r.node IS NULL THEN r.zone
        ELSE 'node ' || r.node || ' ' || r.zone
      END AS place
    FROM reclaim_write AS r
  ),
  summed AS (
    SELECT
      z.ts,
      z.place,
      count(*) OVER (
        PARTITION BY z.place ORDER BY z.ts RANGE UNBOUNDED PRECEDING
      ) AS folios_so_far
    FROM zoned AS z
  ),
  per_second AS (
    SELECT
      z.place,
      (z.ts - b.first_ts) / u.second_ns AS second_index,
      count(*) AS folios_count
    FROM zoned AS z
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_units AS u
    GROUP BY z.place, 2
  ),
  -- A second without writes must bring the curve back to zero.
  next_second AS (
    SELECT p.place, p.second_index, p.folios_count FROM per_second AS p
    UNION ALL
    SELECT p.place, p.second_index + 1, 0
    FROM per_second AS p
    WHERE NOT EXISTS (
      SELECT 1
      FROM per_second AS q
      WHERE q.place = p.place AND q.second_index = p.second_index + 1
    )
  )
SELECT
  s.ts,
  NULL AS dur,
  'Writeback/nr_vmscan_write/' || s.place || ' total' AS track,
  NULL AS name,
  max(s.folios_so_far) AS value,
  'count' AS unit,
  NULL AS args
FROM summed AS s
GROUP BY s.ts, s.place
UNION ALL
SELECT
  b.first_ts + n.second_index * u.second_ns,
  NULL,
  'Writeback/nr_vmscan_write/' || n.place || ' per second',
  NULL,
  n.folios_count,
  'folios/s',
  NULL
FROM next_second AS n
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u;
