-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled.

-- @query    bdi_samples
-- @title    Dirty pages, writeback and throughput of each bdi
-- @summary  Each bdi's dirty and writeback pages against its threshold, and
--   what was written against the kernel's estimate, from samples.
-- @read     Also while nobody is throttled, and dirty and writeback pages
--   apart, which no event tells. A row with a cgroup is what this cgroup writes
--   to the bdi (6.10 and later); up to 6.9 the bdi's own rows are of the root
--   cgroup only. Rates are between samples, a second apart as a rule, and count
--   in the window in which the later one lies.
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @column   window_start_ns INTEGER trace clock; also before the first event
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root; NULL = the
--   bdi as a whole
-- @column   samples_count INTEGER samples in the window
-- @column   dirty_bytes REAL dirty, not under writeback; mean of the samples
-- @column   writeback_bytes REAL under writeback; mean of the samples
-- @column   wb_dirty_max_bytes INTEGER both together, largest
-- @column   wb_thresh_bytes REAL its share of the dirty threshold; mean
-- @column   dirtied_bytes_per_s REAL pages dirtied; NULL = first sample only
-- @column   written_bytes_per_s REAL pages written; NULL = first sample only
-- @column   write_bw_bytes_per_s REAL the kernel's smoothed estimate; mean
-- @source   mm/backing-dev.c bdi_debug_stats_show(), cgwb_debug_stats_show()
WITH
  placed AS (
    SELECT s.*
    FROM sampled!('bdi') AS s
    CROSS JOIN wb_params AS p
    WHERE (p.bdi IS NULL OR s.device = p.bdi)
      AND (p.cgroup_ino IS NULL OR s.cgroup_ino = p.cgroup_ino)
  )
SELECT
  s.window_start_ns,
  s.device AS bdi,
  s.cgroup_ino,
  count(*) AS samples_count,
  avg(s.dirty_bytes) AS dirty_bytes,
  avg(s.writeback_bytes) AS writeback_bytes,
  max(s.dirty_bytes + s.writeback_bytes) AS wb_dirty_max_bytes,
  avg(s.wb_thresh_bytes) AS wb_thresh_bytes,
  1.0 * sum(s.dirtied_bytes) * max(u.second_ns) / sum(s.dur_ns)
    AS dirtied_bytes_per_s,
  1.0 * sum(s.written_bytes) * max(u.second_ns) / sum(s.dur_ns)
    AS written_bytes_per_s,
  avg(s.write_bw_bytes_per_s) AS write_bw_bytes_per_s
FROM placed AS s
CROSS JOIN wb_units AS u
GROUP BY s.window_start_ns, s.device, s.cgroup_ino
ORDER BY s.window_start_ns, s.device, s.cgroup_ino;
