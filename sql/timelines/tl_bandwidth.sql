-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_bandwidth
-- @title    Bandwidth of each bdi
-- @order    40
-- @group    Bandwidth: The kernel's estimates of each bdi's bandwidth, and the
--   rates that it lets tasks dirty pages at. Only while tasks are throttled,
--   every 200 ms at most; a new bdi starts at a made-up 100 MiB/s.
-- @level    One backing device (bdi), or what one cgroup writes to it
-- @track    write_bw [rate]: bandwidth of the disk in the last interval, before
--   this update
-- @track    avg_write_bw [rate]: the same, smoothed
-- @track    dirty_rate [rate]: how fast pages were dirtied
-- @track    dirty_ratelimit [rate]: base rate of one task, about write_bw /
--   tasks
-- @track    balanced_dirty_ratelimit [rate]: rate that would balance dirtying
--   and writing
-- @track    task_ratelimit [rate]: base rate times pos_ratio, for the bdi
-- @summary  The kernel's estimates of bandwidth and its rate limits, by bdi and
--   cgroup.
-- @grain    sample of one curve; order ts
-- @events   writeback:bdi_dirty_ratelimit|writeback:dirty_throttle_bandwidth
-- @cost     30
CREATE VIEW tl_bandwidth AS
WITH
  curve(place, name) AS (
    SELECT 0, 'write_bw'
    UNION ALL SELECT 1, 'avg_write_bw'
    UNION ALL SELECT 2, 'dirty_rate'
    UNION ALL SELECT 3, 'dirty_ratelimit'
    UNION ALL SELECT 4, 'balanced_dirty_ratelimit'
    UNION ALL SELECT 5, 'task_ratelimit'
  )
SELECT
  r.ts,
  NULL AS dur,
  'Writeback/Bandwidth/'
    || replace(
      replace(coalesce(d.device || ' ', '') || r.bdi, '\', '\\'),
      '/',
      '\/'
    )
    || CASE WHEN r.cgroup_ino > 1 THEN ' cgroup ' || r.cgroup_ino ELSE '' END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN r.write_bw_bytes_per_s
    WHEN 1 THEN r.avg_write_bw_bytes_per_s
    WHEN 2 THEN r.dirty_rate_bytes_per_s
    WHEN 3 THEN r.dirty_ratelimit_bytes_per_s
    WHEN 4 THEN r.balanced_dirty_ratelimit_bytes_per_s
    WHEN 5 THEN r.task_ratelimit_bytes_per_s
  END AS value,
  'bytes/s' AS unit
FROM wb_bandwidth AS r
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = r.bdi;
