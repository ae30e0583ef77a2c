-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_total
-- @summary  What each kind of reclaimer scanned, freed and wrote, from events.
-- @grain    reclaimer; order reclaimer
-- @needs    reclaim_work, reclaim_write_scale, raw_event_format, wb_bounds
-- @optional vmscan:mm_vmscan_lru_shrink_inactive
-- @column   reclaimer TEXT kswapd, direct, memcg or other
-- @column   scanned_count INTEGER pages; NULL = the event was not recorded
-- @column   reclaimed_count INTEGER pages; NULL = the event was not recorded
-- @column   anon_writes_count INTEGER pages, scaled as in reclaim_writes; NULL
--   = the event was not recorded
-- @column   file_writes_count INTEGER pages, scaled as in reclaim_writes
-- @source   mm/vmscan.c shrink_inactive_list()
-- @materialize
CREATE VIEW reclaim_total AS
WITH
  recorded AS (
    SELECT
      EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event = 'vmscan:mm_vmscan_lru_shrink_inactive'
      ) AS has_scans,
      EXISTS (
        SELECT 1 FROM raw_event_format AS f
        WHERE f.event IN (
          'vmscan:mm_vmscan_write_folio', 'vmscan:mm_vmscan_writepage'
        )
      ) AS has_writes
  ),
  kinds AS (
    SELECT 'kswapd' AS reclaimer
    UNION ALL
    SELECT 'direct'
    UNION ALL
    SELECT 'memcg'
    UNION ALL
    SELECT 'other'
  ),
  summed AS (
    SELECT
      w.reclaimer,
      sum(w.scanned_count) AS scanned,
      sum(w.reclaimed_count) AS reclaimed,
      sum(
        CASE WHEN w.work = 'write' AND w.reclaim_flags & 3 = 1 THEN 1 ELSE 0 END
      ) AS anon_writes,
      sum(
        CASE WHEN w.work = 'write' AND w.reclaim_flags & 3 = 2 THEN 1 ELSE 0 END
      ) AS file_writes
    FROM reclaim_work AS w
    CROSS JOIN wb_bounds AS b
    WHERE w.ts >= b.start_ts AND w.ts < b.end_ts
    GROUP BY w.reclaimer
  )
SELECT
  k.reclaimer,
  CASE WHEN r.has_scans THEN coalesce(s.scanned, 0) END AS scanned_count,
  CASE WHEN r.has_scans THEN coalesce(s.reclaimed, 0) END AS reclaimed_count,
  CASE
    WHEN r.has_writes
      THEN coalesce(s.anon_writes, 0) * c.pages_per_events_num
        / c.pages_per_events_den
  END AS anon_writes_count,
  CASE
    WHEN r.has_writes
      THEN coalesce(s.file_writes, 0) * c.pages_per_events_num
        / c.pages_per_events_den
  END AS file_writes_count
FROM kinds AS k
CROSS JOIN recorded AS r
CROSS JOIN reclaim_write_scale AS c
LEFT JOIN summed AS s ON s.reclaimer = k.reclaimer;
