-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_vmstat
-- @title    vmstat
-- @order    140
-- @group    vmstat: Counters of /proc/vmstat that have to do with writeback and
--   reclaim. Curves where wbscope record sampled them, else one bar with what
--   each was before and after the trace.
-- @track    before and after: vmstat.before and vmstat.after, which have no
--   time, or the first and the last sample of a Perfetto trace
-- @track    nr_*: /proc/vmstat; pages
-- @track    *: /proc/vmstat
-- @summary  /proc/vmstat before, in and after the run: counters of writeback
--   and reclaim that changed.
-- @grain    counter and sample; order ts
-- @column   arg_more TEXT a line for each counter: before, after and the change
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
  ),
  is_sampled AS (
    SELECT count(*) AS samples FROM raw_vmstat AS v WHERE v.sample = 'sampled'
  ),
  change AS (
    SELECT
      v.name || '=' || v.before_value || ' -> ' || v.after_value
        || printf(' (%+d)', v.gained_count) AS line
    FROM wb_vmstat AS v
    WHERE v.gained_count <> 0 AND v.name IN (SELECT c.name FROM chosen AS c)
    ORDER BY v.name
  ),
  bar AS (
    SELECT
      count(*) AS changes_count,
      group_concat(c.line, char(10)) AS arg_more,
      (SELECT min(v.ts) FROM raw_vmstat AS v) AS from_ts,
      (SELECT max(v.ts) FROM raw_vmstat AS v) AS to_ts
    FROM change AS c
  )
SELECT
  coalesce(
    v.ts, CASE v.sample WHEN 'before' THEN b.first_ts ELSE b.last_ts END
  ) AS ts,
  NULL AS dur,
  'Writeback/vmstat/' || replace(replace(v.name, '\', '\\'), '/', '\/')
    AS track,
  NULL AS name,
  v.value,
  'count' AS unit,
  NULL AS arg_more
FROM raw_vmstat AS v
CROSS JOIN wb_bounds AS b
CROSS JOIN is_sampled AS s
WHERE s.samples > 0
  AND v.name IN (SELECT c.name FROM chosen AS c)
  AND v.value IS NOT NULL
UNION ALL
SELECT
  coalesce(r.from_ts, b.first_ts),
  coalesce(r.to_ts, b.last_ts) - coalesce(r.from_ts, b.first_ts),
  'Writeback/vmstat/before and after',
  r.changes_count || ' counters changed',
  NULL, NULL, r.arg_more
FROM bar AS r
CROSS JOIN wb_bounds AS b
CROSS JOIN is_sampled AS s
WHERE s.samples = 0 AND r.changes_count > 0;
