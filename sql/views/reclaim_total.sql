-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_total
-- @summary  What each kind of reclaimer scanned, freed and wrote, from events.
-- @grain    reclaimer; order reclaimer
-- @needs    reclaim_work, reclaim_write_scale, raw_event_format, wb_bounds
-- @optional vmscan:mm_vmscan_lru_shrink_inactive,
--   vmscan:mm_vmscan_reclaim_writeback
-- @column   reclaimer TEXT kswapd, direct, memcg or other; node and proactive
--   where mm_vmscan_reclaim_writeback told that they wrote
-- @column   scanned_count INTEGER pages; NULL = the event was not recorded, or
--   node reclaim, whose scans are those of other
-- @column   reclaimed_count INTEGER pages; NULL as scanned_count
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
          'vmscan:mm_vmscan_write_folio',
          'vmscan:mm_vmscan_writepage',
          'vmscan:mm_vmscan_reclaim_writeback'
        )
      ) AS has_writes
  ),
  summed AS (
    SELECT
      w.reclaimer,
      sum(w.scanned_count) AS scanned,
      sum(w.reclaimed_count) AS reclaimed,
      sum(
        CASE
          WHEN w.work = 'write' AND w.reclaim_flags & 3 = 1
            THEN coalesce(w.pages_count, 1)
          ELSE 0
        END
      ) AS anon_writes,
      sum(
        CASE
          WHEN w.work = 'write' AND w.reclaim_flags & 3 = 2
            THEN coalesce(w.pages_count, 1)
          ELSE 0
        END
      ) AS file_writes
    FROM reclaim_work AS w
    CROSS JOIN wb_bounds AS b
    WHERE w.ts >= b.start_ts AND w.ts < b.end_ts
    GROUP BY w.reclaimer
  ),
  kinds AS (
    SELECT 'kswapd' AS reclaimer
    UNION
    SELECT 'direct'
    UNION
    SELECT 'memcg'
    UNION
    SELECT 'other'
    UNION
    SELECT s.reclaimer
    FROM summed AS s
    WHERE s.anon_writes > 0 OR s.file_writes > 0
  )
SELECT
  k.reclaimer,
  CASE WHEN r.has_scans AND k.reclaimer <> 'node'
    THEN coalesce(s.scanned, 0)
  END AS scanned_count,
  CASE WHEN r.has_scans AND k.reclaimer <> 'node'
    THEN coalesce(s.reclaimed, 0)
  END AS reclaimed_count,
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
