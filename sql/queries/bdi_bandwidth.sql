-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    bdi_bandwidth
-- @title    Estimated bandwidth of each device
-- @summary  The kernel's estimates of each bdi's write bandwidth and rates.
-- @read     Estimates exist only while tasks are throttled, lag by 200 ms and
--   start from a made-up 100 MiB/s; for measured rates see
--   throughput_by_device. With a memory cgroup the kernel computes an update
--   twice, for the machine's limits and for the cgroup's, and keeps the second:
--   only the second event of such a pair counts here.
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @events   writeback:bdi_dirty_ratelimit|writeback:dirty_throttle_bandwidth
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   updates_count INTEGER events in the window; of a pair, one
-- @column   write_bw_bytes_per_s REAL mean of the events
-- @column   avg_write_bw_bytes_per_s REAL mean of the smoothed estimate
-- @column   dirty_rate_bytes_per_s REAL mean
-- @column   dirty_ratelimit_bytes_per_s REAL mean
-- @column   balanced_dirty_ratelimit_bytes_per_s REAL mean
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   avg_write_bw_bytes_per_s higher: how fast the kernel believes that
--   the device writes; it slows programs down to that speed, so a wrong belief
--   holds them up too much or too little
WITH
  placed AS (
    SELECT (r.ts - b.start_ts) / p.window_ns AS window_index, r.*
    FROM wb_bandwidth AS r
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(r.ts, b)
      AND of_wb!(r, p)
  )
SELECT
  w.window_start_ns, r.bdi, r.cgroup_ino,
  count(*) AS updates_count,
  avg(r.write_bw_bytes_per_s) AS write_bw_bytes_per_s,
  avg(r.avg_write_bw_bytes_per_s) AS avg_write_bw_bytes_per_s,
  avg(r.dirty_rate_bytes_per_s) AS dirty_rate_bytes_per_s,
  avg(r.dirty_ratelimit_bytes_per_s) AS dirty_ratelimit_bytes_per_s,
  avg(r.balanced_dirty_ratelimit_bytes_per_s)
    AS balanced_dirty_ratelimit_bytes_per_s,
  max(w.lost_gaps_count) AS lost_gaps_count
FROM placed AS r
JOIN wb_window AS w ON w.window_index = r.window_index
GROUP BY w.window_start_ns, r.bdi, r.cgroup_ino
ORDER BY w.window_start_ns, r.bdi, r.cgroup_ino;
