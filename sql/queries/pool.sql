-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    pool
-- @title    Whose dirty pages filled the machine's pool
-- @summary  What each wb held of the machine's dirty pages, in windows.
-- @read     held is the mean of what the wb's own events and samples say; those
--   of a window add up to the machine's dirty pages. A row without bdi is what
--   no event or sample shows: a wb is seen only while its tasks are throttled,
--   or where `record` sampled debugfs.
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   held_bytes REAL mean of what it held
-- @column   held_ratio REAL of the machine's dirty pages
-- @source   docs/findings.md
SELECT
  w.window_start_ns, w.bdi, w.cgroup_ino,
  1.0 * w.held_bytes AS held_bytes,
  w.share_ratio AS held_ratio,
  w.pool_bytes
FROM wb_pool_window AS w
CROSS JOIN wb_params AS p
WHERE (p.bdi IS NULL OR w.bdi = p.bdi)
  AND (p.cgroup_ino IS NULL OR w.cgroup_ino = p.cgroup_ino)
ORDER BY w.window_start_ns, w.bdi IS NULL, w.bdi, w.cgroup_ino;
