-- SPDX-License-Identifier: Apache-2.0
-- @finding   new_bdi_bandwidth
-- @title     The kernel overestimates a new device
-- @summary   Tasks were throttled within 3 s of the first throttling for their
--   wb, while the kernel estimated its bandwidth at four times the real one or
--   more: a new wb starts at 100 MiB/s, so writers run into the limit.
-- @when      new_bdi_bandwidth
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} at the start of writing to {bdi}:
--   the kernel estimated its bandwidth at {believed_bytes_per_s}, but it wrote
--   {disk_bytes_per_s}[; one write was blocked for {call_part_ns} of that].
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=new_bdi_bandwidth, bdi={bdi}); call_part_ns = max(call_part_max_ns,
--   finding=new_bdi_bandwidth, bdi={bdi})
-- @evidence  disk_rates: believed_bytes_per_s = max(believed_bytes_per_s,
--   bdi={bdi})
-- @evidence  disk_rates: disk_bytes_per_s = max(disk_bytes_per_s, bdi={bdi})
-- @advice    Set max_ratio of {bdi} to {max_percent} from the start, by a udev
--   rule for such disks: it writes {max_percent} % of the limit per second.[
--   Linux {old_release} applies max_ratio only near the limit; since 6.2,
--   strict_limit=1 applies it always.]
-- @set       /sys/class/bdi/{bdi:raw}/strict_limit = {strict:raw}
-- @set       /sys/class/bdi/{bdi:raw}/max_ratio = {max_percent:raw}
-- @now       [/sys/class/bdi/{bdi:raw}/strict_limit = {lax:raw} (the default;
--   not recorded)]
-- @now       /sys/class/bdi/{bdi:raw}/max_ratio = 100
--   (the default; not recorded)
-- @costs     Copies to {bdi} are throttled earlier.
-- @events    writeback:balance_dirty_pages, writeback:bdi_dirty_ratelimit
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where the disk got much less than the
--   pages that were written
-- @column   call_part_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up for this reason
-- @column    max_percent INTEGER per cent of the limit that it writes in a
--   second; NULL = nearly all of it, or more
-- @column    strict INTEGER 1: the kernel has strict_limit; NULL = it has not,
--   or max_percent is not known
-- @column    lax INTEGER 0 likewise, which is the default
-- @column    old_release TEXT the kernel, where it has not, and max_percent is
--   known
-- @source    mm/backing-dev.c INIT_BW; mm/page-writeback.c
--   wb_update_write_bandwidth()
WITH
  -- Where a second of the disk is most of the pool, no ratio helps; small
  -- requests would merge less below one.
  ratio AS (
    SELECT
      d.bdi,
      max(1, CAST(100 * d.disk_bytes_per_s / m.thresh_bytes AS INTEGER))
        AS max_percent,
      coalesce(k.version, 6002) >= 6002 AS has_strict,
      k.release
    FROM wb_disk_rate AS d
    CROSS JOIN dirty_limits AS m
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS k
    WHERE d.disk_bytes_per_s * 100 <= m.thresh_bytes * v.most_percent
      AND coalesce(d.request_bytes >= v.small_request_bytes, 1)
  )
SELECT
  t.cost_task_ns,
  CASE WHEN t.call_max_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  CASE WHEN d.reached_ratio IS NULL THEN 'measured' ELSE 'inferred' END
    AS confidence,
  t.tasks, t.bdi,
  d.believed_bytes_per_s, d.disk_bytes_per_s, t.call_part_ns, r.max_percent,
  CASE WHEN r.has_strict THEN 1 END AS strict,
  CASE WHEN r.has_strict THEN 0 END AS lax,
  CASE r.has_strict WHEN 0 THEN r.release END AS old_release,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
JOIN disk_rates AS d ON d.bdi = t.bdi
LEFT JOIN ratio AS r ON r.bdi = t.bdi
WHERE t.finding = 'new_bdi_bandwidth' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
