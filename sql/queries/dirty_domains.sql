-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    dirty_domains
-- @title    Dirty pages of each domain
-- @order    43
-- @summary  Dirty pages against the thresholds of the machine and of each
--   memory cgroup, and who looked.
-- @read     A task is throttled by the domain that is worse off. dirty_thresh
--   is the mean of dirty over thresh; near 1 the domain's tasks stop. Means are
--   of events, which come when tasks dirty pages and flushers look, not of
--   time. basis says where the numbers are from: only a patched kernel's
--   wb_domain_dirty_state has the thresholds of cgroups and who asked; a stock
--   kernel's balance_dirty_pages events tell of a cgroup's domain only while it
--   throttles. Flushers count pages under writeback as clean: what they saw
--   is not in dirty_bytes and the ratios. Boosted thresholds (real-time
--   callers) are left out.
-- @filters  range, cgroup
-- @grain    domain; order domain, cgroup_ino
-- @keys     domain, cgroup_ino
-- @events   writeback:global_dirty_state|writeback:balance_dirty_pages|
--   writeback:wb_domain_dirty_state
-- @column   cgroup_path TEXT its path, where the run's cgroups file has it
-- @column   dirty_bytes INTEGER mean of dirty and writeback pages; NULL = only
--   flushers looked
-- @column   bg_thresh_bytes INTEGER mean of where the flusher starts
-- @column   thresh_bytes INTEGER mean dirty threshold; NULL = not told
-- @column   limit_bytes INTEGER mean of max(thresh, dirty_limit)
-- @column   by_dirtier_count INTEGER events of tasks that dirty pages; NULL =
--   not told
-- @column   by_flusher_count INTEGER events of flushers
-- @column   by_sampler_count INTEGER events of readers of /proc/vmstat, debugfs
-- @column   basis TEXT domain_dirty_state, global_dirty_state or
--   balance_dirty_pages
-- @metric   dirty_thresh_ratio neutral: how full the memory is, on average,
--   that this part of the system may use for data that waits for disks
-- @source   mm/page-writeback.c domain_dirty_limits(), balance_dirty_pages()
SELECT
  s.domain, s.cgroup_ino,
  (SELECT min(g.path) FROM raw_cgroup AS g WHERE g.cgroup_ino = s.cgroup_ino)
    AS cgroup_path,
  s.events_count,
  CAST(s.dirty_bytes AS INTEGER) AS dirty_bytes,
  s.dirty_max_bytes,
  CAST(s.bg_thresh_bytes AS INTEGER) AS bg_thresh_bytes,
  CAST(s.thresh_bytes AS INTEGER) AS thresh_bytes,
  s.thresh_min_bytes,
  CAST(s.limit_bytes AS INTEGER) AS limit_bytes,
  s.dirty_thresh_ratio, s.dirty_thresh_max_ratio, s.above_thresh_count,
  CASE WHEN s.callers_count > 0 THEN s.dirtier_count END AS by_dirtier_count,
  CASE WHEN s.callers_count > 0 THEN s.flusher_count END AS by_flusher_count,
  CASE WHEN s.callers_count > 0 THEN s.sampler_count END AS by_sampler_count,
  s.boosted_count, s.basis
FROM wb_domain_sum AS s
CROSS JOIN wb_params AS p
WHERE p.cgroup_ino IS NULL OR s.cgroup_ino = p.cgroup_ino
ORDER BY s.domain, s.cgroup_ino, s.basis;
