-- SPDX-License-Identifier: Apache-2.0
-- @query    reclaim_zone_prints
-- @title    Zones when reclaim wrote pages (log lines of 2011)
-- @summary  What each zone looked like when reclaim wrote a page, in a kernel
--   log with the lines "reclaim: ... zone=Normal inactive=112313(821289) ...".
-- @read     dirty_ratio near or above 100 %: the zone's inactive list is all
--   dirty, although global_dirty_ratio is low. Lines come once in each reclaim,
--   so prints_count is no count of pages.
-- @grain    zone; order zone
-- @needs    raw_reclaim, wb_units
-- @events   printk:reclaim
-- @column   zone TEXT zone
-- @column   prints_count INTEGER lines
-- @column   inactive_bytes INTEGER mean of the zone's inactive list
-- @column   dirty_bytes INTEGER mean of its dirty pages
-- @column   writeback_bytes INTEGER mean of its pages under writeback
-- @column   dirty_ratio REAL dirty pages of the zone, by its inactive pages
-- @column   global_dirty_ratio REAL the same for all zones together
SELECT
  r.zone,
  count(*) AS prints_count,
  CAST(avg(r.inactive_zone) * u.page_bytes AS INTEGER) AS inactive_bytes,
  CAST(avg(r.dirty_zone) * u.page_bytes AS INTEGER) AS dirty_bytes,
  CAST(avg(r.writeback_zone) * u.page_bytes AS INTEGER) AS writeback_bytes,
  1.0 * sum(r.dirty_zone) / nullif(sum(r.inactive_zone), 0) AS dirty_ratio,
  1.0 * sum(r.dirty_global) / nullif(sum(r.inactive_global), 0)
    AS global_dirty_ratio
FROM raw_reclaim AS r
CROSS JOIN wb_units AS u
GROUP BY r.zone, u.page_bytes
ORDER BY r.zone;
