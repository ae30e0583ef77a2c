-- SPDX-License-Identifier: Apache-2.0
-- @finding   direct_reclaim
-- @title     Tasks reclaim memory themselves
-- @summary   Tasks waited in direct reclaim, which met hardly any dirty page:
--   kswapd does not keep up. A warning where it cost more than throttling.
-- @when      direct_reclaim
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} in {place:raw}[, {barren_ratio}
--   of it because reclaim made no progress][, more than the {throttled_ns} of
--   throttling][; {skipped_ratio} of the pages that it looked at are of zones
--   that it may not take from][; compaction ran meanwhile ({compaction:raw}),
--   and some of that time may be its].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=direct_reclaim);
--   throttled_ns = sum(total_ns, kind=throttle); barren_ratio = sum(total_ns,
--   finding=direct_reclaim, cause=reclaim without progress) / sum(total_ns,
--   finding=direct_reclaim)
-- @advice    [Let kswapd begin {earlier:raw}.][kswapd begins early already
--   (vm.watermark_scale_factor is {high_factor:raw}): let fewer tasks allocate
--   at once, or add memory.][Let kswapd begin earlier, by a higher
--   vm.min_free_kbytes: Linux {old_release} has no
--   vm.watermark_scale_factor.][Let less run at a time, or {room:raw}: no
--   watermark makes pages that can be taken.]
-- @set       vm.watermark_scale_factor = {proposed_factor:raw}
-- @now       [vm.watermark_scale_factor = {watermark_scale_factor:raw}]
-- @costs     [More memory stays free and unused, {proposed_percent} % of each
--   zone from one watermark to the next.]
-- @expect    [{expected:raw}]
-- @optional  vmscan:mm_vmscan_direct_reclaim_begin, vmscan:mm_vmscan_throttled
-- @column    severity TEXT warning or note
-- @column    place TEXT direct reclaim, or reclaim where only sleeps in it were
--   recorded (mm_vmscan_throttled, writeback_congestion_wait)
-- @column    throttled_ns INTEGER time that tasks were throttled; NULL = that
--   was more
-- @column    barren_ratio REAL share of the waits in which reclaim made no
--   progress (VMSCAN_THROTTLE_NOPROGRESS); NULL = less than half
-- @column    room TEXT add memory, where that is so
-- @column    skipped_ratio REAL share of nr_skipped in what lru_isolate
--   scanned, where that is most; NULL = less, or not recorded
-- @column    compaction TEXT events of compaction; NULL = none was recorded
-- @column    proposed_factor INTEGER ten times that, 300 at most; NULL = it is
--   as high already, or the kernel has none (before 4.6)
-- @column    proposed_percent REAL the same in per cent of a zone
-- @column    earlier TEXT earlier, where it is to be set
-- @column    expected TEXT what should fall then
-- @column    high_factor INTEGER setting now, where it is as high already
-- @column    old_release TEXT the kernel, where it has no such setting
-- @source    mm/page_alloc.c __perform_reclaim(), __setup_per_zone_wmarks();
--   Documentation/admin-guide/sysctl/vm.rst
WITH
  throttled AS (
    SELECT coalesce(sum(l.dur), 0) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle' AND in_time!(l.ts, b)
  ),
  -- Ten times the default helps kswapd; 3 % of a zone is much to keep free.
  scale AS (
    SELECT
      u.watermark_scale_factor,
      u.version < 4006 AS is_old,
      coalesce(u.watermark_scale_factor >= v.most_scale_factor, 0) AS is_high,
      min(v.most_scale_factor, 10 * coalesce(u.watermark_scale_factor, 10))
        AS factor,
      u.release
    FROM wb_units AS u
    CROSS JOIN wb_rule AS v
  ),
  barren AS (
    SELECT
      1.0 * sum(CASE l.cause WHEN 'reclaim without progress' THEN l.dur END)
        / sum(l.dur) AS ratio,
      total(CASE l.kind WHEN 'direct reclaim' THEN l.dur END)
        / sum(l.dur) AS direct_ratio
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'direct_reclaim'
      AND in_time!(l.ts, b)
  ),
  beside AS (
    SELECT
      CASE WHEN i.skipped >= v.most_ratio * i.scanned
        THEN 1.0 * i.skipped / i.scanned
      END AS skipped_ratio,
      (
        SELECT sum(c.count) || ' events of mm_compaction_*'
        FROM raw_event_counts AS c
        WHERE c.event GLOB '*mm_compaction_*'
        HAVING sum(c.count) > 0
      ) AS compaction,
      (SELECT o.ratio FROM barren AS o WHERE o.ratio >= v.most_ratio)
        AS barren_ratio,
      (SELECT o.direct_ratio FROM barren AS o) AS direct_ratio
    FROM (
      SELECT total(s.nr_skipped) AS skipped, total(s.nr_scanned) AS scanned
      FROM raw_mm_vmscan_lru_isolate AS s
    ) AS i
    CROSS JOIN wb_rule AS v
    WHERE i.scanned >= 0
  ),
  advised AS (
    SELECT
      c.watermark_scale_factor,
      CASE WHEN coalesce(c.is_old, 0) = 0 AND c.is_high = 0 THEN c.factor END
        AS factor,
      CASE WHEN c.is_high THEN c.watermark_scale_factor END AS high_factor,
      CASE c.is_old WHEN 1 THEN c.release END AS old_release
    FROM scale AS c
    -- No watermark makes room in the zone that is short, nor compacts.
    CROSS JOIN beside AS o
    WHERE o.skipped_ratio IS NULL
      AND o.compaction IS NULL
      AND o.barren_ratio IS NULL
      AND o.direct_ratio > 0
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.cost_task_ns >= v.long_call_ns AND t.cost_task_ns > h.dur
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  t.tasks,
  CASE WHEN z.direct_ratio > 0 THEN 'direct reclaim' ELSE 'reclaim' END
    AS place,
  CASE WHEN h.dur > 0 AND h.dur < t.cost_task_ns THEN h.dur END
    AS throttled_ns,
  z.barren_ratio,
  CASE WHEN z.barren_ratio > 0 THEN 'add memory' END AS room,
  z.skipped_ratio, z.compaction, s.watermark_scale_factor,
  s.factor AS proposed_factor,
  0.01 * s.factor AS proposed_percent,
  CASE WHEN s.factor > 0 THEN 'earlier' END AS earlier,
  CASE WHEN s.factor > 0 THEN 'allocstall lower' END AS expected,
  s.high_factor, s.old_release, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN beside AS z
LEFT JOIN advised AS s ON 1 = 1
CROSS JOIN throttled AS h
WHERE t.finding = 'direct_reclaim' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC;
