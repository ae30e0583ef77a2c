-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_vmstat
-- @title    vmstat
-- @order    140
-- @group    vmstat: Counters of /proc/vmstat that have to do with writeback and
--   reclaim, from the files beside the trace. When those were read is not
--   known: vmstat.before is drawn at the first event, vmstat.after at the last.
-- @track    nr_*: /proc/vmstat; pages
-- @track    *: /proc/vmstat
-- @summary  /proc/vmstat before and after the run: counters of writeback and
--   reclaim that changed.
-- @grain    counter and sample; order ts
-- @needs    wb_vmstat, wb_bounds
CREATE VIEW tl_vmstat AS
WITH
  chosen AS (
    SELECT v.name, v.before_value, v.after_value
    FROM wb_vmstat AS v
    WHERE coalesce(v.before_value <> v.after_value, 1)
      AND (
        v.name GLOB 'nr_dirt*'
        OR v.name GLOB 'nr_writ*'
        OR v.name GLOB 'nr_unstable*'
        OR v.name GLOB 'nr_vmscan*'
        OR v.name GLOB 'nr_throttled*'
        OR v.name GLOB 'nr_*active_*'
        OR v.name GLOB 'nr_free_pages'
        OR v.name GLOB 'pgscan*'
        OR v.name GLOB 'pgsteal*'
        OR v.name GLOB 'pswp*'
        OR v.name GLOB 'allocstall*'
        OR v.name GLOB 'kswapd*'
        OR v.name GLOB 'pageoutrun'
        OR v.name GLOB 'pgmajfault'
        OR v.name GLOB 'pgrotated'
      )
  )
SELECT
  b.first_ts AS ts,
  NULL AS dur,
  'Writeback/vmstat/' || replace(replace(c.name, '\', '\\'), '/', '\/')
    AS track,
  NULL AS name,
  c.before_value AS value,
  'count' AS unit
FROM chosen AS c
CROSS JOIN wb_bounds AS b
WHERE c.before_value IS NOT NULL
UNION ALL
SELECT
  b.last_ts,
  NULL,
  'Writeback/vmstat/' || replace(replace(c.name, '\', '\\'), '/', '\/'),
  NULL,
  c.after_value,
  'count'
FROM chosen AS c
CROSS JOIN wb_bounds AS b
WHERE c.after_value IS NOT NULL;
