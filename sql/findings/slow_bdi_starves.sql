-- SPDX-License-Identifier: Apache-2.0
-- @finding   slow_bdi_starves
-- @title     Dirty pages of one device throttle writers of another
-- @summary   Tasks were throttled while their own wb held less than its share
--   of free run, or while their own disk was idle: pages of another device
--   filled the machine's pool. severe where that was most of the time that they
--   were throttled; a warning if the trace does not show which device they
--   belong to.
-- @when      slow_bdi_starves
-- @severity  severe
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} writing to {bdi}, throttled by other
--   dirty pages: {own_share_ratio} of the dirty pages belonged to {bdi}[ and
--   {holder_share_ratio} to {holder_bdi}][, which writes only
--   {holder_bytes_per_s}][; {unknown:raw}][; {bdi} was idle for {idle_ratio} of
--   that time].
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=slow_bdi_starves, bdi={bdi}); own_share_ratio =
--   mean(own_share_ratio, total_ns, finding=slow_bdi_starves, bdi={bdi});
--   holder_share_ratio = mean(holder_share_ratio, total_ns,
--   finding=slow_bdi_starves, bdi={bdi}); idle_ratio = 1 - mean(device_ratio,
--   total_ns, finding=slow_bdi_starves, bdi={bdi})
-- @evidence  blame --bdi {bdi}
-- @evidence  disk_rates: holder_bytes_per_s = max(disk_bytes_per_s,
--   bdi={holder_bdi})
-- @advice    [Set max_ratio of {holder_bdi} to {max_percent}: it writes
--   {max_percent} % of the limit per second.][ Linux {old_release} applies
--   max_ratio only near the limit; since 6.2, strict_limit=1 applies it
--   always.][Lower max_ratio of {unmeasured_bdi} (100 by default) to what it
--   writes in a second, in per cent of the limit (not recorded here; record
--   --profile deep measures it); since 6.2 also set strict_limit = 1.][Look for
--   what can hold back requests above {idle_bdi}, such as an io.max.]
-- @set       /sys/class/bdi/{holder_bdi:raw}/strict_limit = {strict:raw}
-- @set       /sys/class/bdi/{holder_bdi:raw}/max_ratio = {max_percent:raw}
-- @now       [/sys/class/bdi/{holder_bdi:raw}/strict_limit = {lax:raw} (the
--   default; not recorded)]
-- @now       /sys/class/bdi/{holder_bdi:raw}/max_ratio = 100
--   (the default; not recorded)
-- @costs     Writers to {holder_bdi} are throttled earlier.
-- @expect    throttled_ratio of {tasks} lower
-- @events    writeback:balance_dirty_pages
-- @column    title TEXT where nothing tells whose pages they were; NULL = as
--   above
-- @column    severity TEXT severe or warning
-- @column   bdi TEXT the device that they write to
-- @column    own_share_ratio REAL what their own wb held meanwhile
-- @column    holder_bdi TEXT the device whose pages filled the pool; NULL = not
--   known
-- @column    holder_cgroup_ino INTEGER the cgroup that owns that wb
-- @column    holder_share_ratio REAL what that wb held
-- @column    unknown TEXT that nothing tells for most of that time whose pages
--   they were; NULL = it is told
-- @column    idle_ratio REAL likewise, where their own disk had little to do:
--   share of that time in which it had no request; else NULL
-- @column    idle_bdi TEXT that disk
-- @column    holder_bytes_per_s REAL what the holder writes while it is busy
-- @column    max_percent INTEGER per cent of the limit that the holder writes
--   in a second; NULL = nearly all of it, or more
-- @column    unmeasured_bdi TEXT the holder, where its rate is not known
-- @column    strict INTEGER 1: the kernel has strict_limit; NULL = it has not
-- @column    lax INTEGER 0 likewise, which is the default
-- @column    old_release TEXT the kernel, where it has not, and max_percent is
--   known
-- @source    docs/findings.md
WITH
  starved AS (
    SELECT l.*
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'slow_bdi_starves'
      AND in_time!(l.ts, b)
  ),
  share AS (
    SELECT
      s.bdi,
      sum(s.dur * s.own_share_ratio) / sum(s.dur) AS own_share_ratio,
      mean_over!(s.holder_share_ratio, s.dur) AS holder_share_ratio,
      total(CASE WHEN s.holder_bdi IS NOT NULL THEN s.dur END)
        >= v.most_ratio * sum(s.dur) AS is_known
    FROM starved AS s
    CROSS JOIN wb_rule AS v
    GROUP BY s.bdi
  ),
  holder AS (
    SELECT
      s.bdi, s.holder_bdi, s.holder_cgroup_ino,
      row_number() OVER (
        PARTITION BY s.bdi
        ORDER BY
          total(s.dur * s.holder_share_ratio) DESC,
          s.holder_bdi, s.holder_cgroup_ino
      ) AS place
    FROM starved AS s
    WHERE s.holder_bdi IS NOT NULL
    GROUP BY s.bdi, s.holder_bdi, s.holder_cgroup_ino
  ),
  held AS (
    SELECT l.bdi, sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle'
      AND in_time!(l.ts, b)
      AND l.task_id IN (SELECT s.task_id FROM starved AS s)
    GROUP BY l.bdi
  )
SELECT
  t.cost_task_ns,
  CASE s.is_known WHEN 0 THEN 'Other dirty pages throttle writers' END AS title,
  CASE
    WHEN s.is_known AND t.cost_task_ns >= v.most_ratio * w.dur THEN 'severe'
    ELSE 'warning'
  END AS severity,
  t.tasks, t.bdi, s.own_share_ratio, h.holder_bdi, h.holder_cgroup_ino,
  s.holder_share_ratio,
  CASE s.is_known WHEN 0 THEN 'whose the others were is unknown' END AS unknown,
  CASE WHEN s.is_known = 0 AND t.device_ratio < v.most_ratio
    THEN 1 - t.device_ratio
  END AS idle_ratio,
  CASE WHEN s.is_known = 0 AND t.device_ratio < v.most_ratio THEN t.bdi END
    AS idle_bdi,
  d.disk_bytes_per_s AS holder_bytes_per_s,
  CASE
    WHEN d.disk_bytes_per_s * 100 <= m.thresh_bytes * v.most_percent
      THEN max(1, CAST(100 * d.disk_bytes_per_s / m.thresh_bytes AS INTEGER))
  END AS max_percent,
  CASE WHEN d.disk_bytes_per_s IS NULL THEN h.holder_bdi END AS unmeasured_bdi,
  CASE WHEN coalesce(k.version, 6002) >= 6002 AND d.disk_bytes_per_s > 0
    THEN 1
  END AS strict,
  CASE WHEN coalesce(k.version, 6002) >= 6002 AND d.disk_bytes_per_s > 0
    THEN 0
  END AS lax,
  CASE
    WHEN k.version < 6002
      AND d.disk_bytes_per_s * 100 <= m.thresh_bytes * v.most_percent
      THEN k.release
  END AS old_release,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN dirty_limits AS m
CROSS JOIN wb_units AS k
JOIN share AS s ON s.bdi = t.bdi
JOIN held AS w ON w.bdi = t.bdi
LEFT JOIN holder AS h ON h.bdi = t.bdi AND h.place = 1
LEFT JOIN wb_disk_rate AS d ON d.bdi = h.holder_bdi
WHERE t.finding = 'slow_bdi_starves' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
