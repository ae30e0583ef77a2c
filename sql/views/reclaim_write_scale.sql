-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_write_scale
-- @summary  Pages for each mm_vmscan_write_folio event: the event does not say
--   how large its folio is, the counter nr_vmscan_write counts pages. A patched
--   kernel's mm_vmscan_reclaim_writeback does say: nothing is scaled then.
-- @grain    one row
-- @needs    raw_event_counts, raw_lost_events, raw_meta,
--   raw_mm_vmscan_reclaim_writeback, wb_vmstat
-- @column   is_complete INTEGER 1: no event is lost, the trace is not damaged
--   and was read whole; else nothing is scaled
-- @column   basis TEXT reclaim_writeback or pfn: which event counts
-- @column   events_count INTEGER events in the whole trace
-- @column   pages_count INTEGER pages that they tell; NULL = they do not
-- @column   vmstat_count INTEGER pages that nr_vmscan_write gained, or NULL
-- @column   pages_per_events_num INTEGER pages = events * num / den
-- @column   pages_per_events_den INTEGER see above; 1 at least
-- @source   mm/vmscan.c pageout(): node_stat_add_folio(folio, NR_VMSCAN_WRITE)
CREATE VIEW reclaim_write_scale AS
WITH
  totals AS (
    SELECT
      NOT EXISTS (SELECT 1 FROM raw_lost_events)
      AND NOT EXISTS (
        SELECT 1
        FROM raw_meta AS m
        WHERE m.key IN ('damaged', 'partial') AND m.value = 1
      ) AS is_complete,
      (
        SELECT count(*)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0
      ) AS told_count,
      (
        SELECT coalesce(sum(y.nr_pages), 0)
        FROM raw_mm_vmscan_reclaim_writeback AS y
        WHERE y.outcome = 0
      ) AS told_pages_count,
      EXISTS (SELECT 1 FROM raw_mm_vmscan_reclaim_writeback) AS is_told,
      (
        SELECT coalesce(sum(c.count), 0)
        FROM raw_event_counts AS c
        WHERE c.event IN (
          'vmscan:mm_vmscan_write_folio', 'vmscan:mm_vmscan_writepage'
        )
      ) AS events_count,
      (
        SELECT v.gained_count
        FROM wb_vmstat AS v
        WHERE v.name = 'nr_vmscan_write'
      ) AS vmstat_count
  )
SELECT
  t.is_complete,
  CASE WHEN t.is_told THEN 'reclaim_writeback' ELSE 'pfn' END AS basis,
  CASE WHEN t.is_told THEN t.told_count ELSE t.events_count END AS events_count,
  CASE WHEN t.is_told THEN t.told_pages_count END AS pages_count,
  t.vmstat_count,
  CASE
    WHEN t.is_complete
      AND NOT t.is_told
      AND t.events_count > 0
      AND t.vmstat_count > t.events_count
      THEN t.vmstat_count
    ELSE 1
  END AS pages_per_events_num,
  CASE
    WHEN t.is_complete
      AND NOT t.is_told
      AND t.events_count > 0
      AND t.vmstat_count > t.events_count
      THEN t.events_count
    ELSE 1
  END AS pages_per_events_den
FROM totals AS t;
