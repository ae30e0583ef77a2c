-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_vmstat
-- @title    vmstat
-- @order    140
-- @group    vmstat: Counters of /proc/vmstat that have to do with writeback and
--   reclaim, sampled by wbscope record and from the files beside the trace.
--   When those were read is not known: vmstat.before is drawn at the first
--   event, vmstat.after at the last.
-- @track    nr_*: /proc/vmstat; pages
-- @track    *: /proc/vmstat
-- @summary  /proc/vmstat before, in and after the run: counters of writeback
--   and reclaim that changed.
-- @grain    counter and sample; order ts
-- @needs    raw_vmstat, wb_bounds
CREATE VIEW tl_vmstat AS
WITH
  chosen AS (
    SELECT v.name
    FROM raw_vmstat AS v
    WHERE
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
      OR v.name GLOB 'swp*_zero'
      OR v.name GLOB 'zswp*'
      OR v.name GLOB 'allocstall*'
      OR v.name GLOB 'kswapd*'
      OR v.name GLOB 'pageoutrun'
      OR v.name GLOB 'pgmajfault'
      OR v.name GLOB 'pgrotated'
    GROUP BY v.name
    HAVING min(v.value) < max(v.value) OR count(*) = 1
  )
SELECT
  CASE v.sample
    WHEN 'before' THEN b.first_ts
    WHEN 'after' THEN b.last_ts
    ELSE v.ts
  END AS ts,
  NULL AS dur,
  'Writeback/vmstat/' || replace(replace(v.name, '\', '\\'), '/', '\/')
    AS track,
  NULL AS name,
  v.value,
  'count' AS unit
FROM raw_vmstat AS v
CROSS JOIN wb_bounds AS b
WHERE v.name IN (SELECT c.name FROM chosen AS c)
  AND v.value IS NOT NULL;
