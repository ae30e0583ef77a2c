-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_domain_sum
-- @summary  What wb_domain_state says of each domain in the time of interest,
--   summed up.
-- @grain    domain; order domain, cgroup_ino
-- @needs    wb_domain_state, wb_bounds
-- @events   writeback:global_dirty_state|writeback:balance_dirty_pages|
--   writeback:wb_domain_dirty_state
-- @column   domain TEXT global or memcg
-- @column   cgroup_ino INTEGER cgroup of the domain; 0 = the machine
-- @column   basis TEXT of wb_domain_state
-- @column   events_count INTEGER events
-- @column   dirty_bytes REAL mean of dirty and writeback pages; NULL = only
--   flushers looked
-- @column   dirty_max_bytes INTEGER largest
-- @column   bg_thresh_bytes REAL mean of where the flusher starts
-- @column   thresh_bytes REAL mean dirty threshold; NULL = not told
-- @column   thresh_min_bytes INTEGER lowest
-- @column   limit_bytes REAL mean of max(thresh, dirty_limit)
-- @column   dirty_thresh_ratio REAL mean of dirty over thresh
-- @column   dirty_thresh_max_ratio REAL largest
-- @column   above_thresh_count INTEGER events, not of flushers, with dirty
--   above thresh; NULL = not told
-- @column   callers_count INTEGER events that tell who asked
-- @column   dirtier_count INTEGER events of tasks that dirty pages
-- @column   flusher_count INTEGER events of flushers
-- @column   sampler_count INTEGER events of readers of /proc/vmstat, debugfs
-- @column   boosted_count INTEGER events with boosted thresholds
-- @source   mm/page-writeback.c domain_dirty_limits(), balance_dirty_pages()
-- @materialize
CREATE VIEW wb_domain_sum AS
WITH
  chosen AS NOT MATERIALIZED (
    SELECT
      s.*,
      1.0 * s.dirty_bytes / nullif(s.thresh_bytes, 0) AS thresh_share,
      s.dirty_bytes > s.thresh_bytes AS is_above_thresh
    FROM wb_domain_state AS s
    CROSS JOIN wb_bounds AS b
    WHERE s.ts >= b.start_ts AND s.ts < b.end_ts
  )
-- The machine's apart, millions of them as a rule: one group is not sorted.
SELECT
  'global' AS domain,
  0 AS cgroup_ino,
  max(c.basis) AS basis,
  count(*) AS events_count,
  avg(c.dirty_bytes) AS dirty_bytes,
  max(c.dirty_bytes) AS dirty_max_bytes,
  avg(c.bg_thresh_bytes) AS bg_thresh_bytes,
  avg(c.thresh_bytes) AS thresh_bytes,
  min(c.thresh_bytes) AS thresh_min_bytes,
  avg(c.limit_bytes) AS limit_bytes,
  avg(c.thresh_share) AS dirty_thresh_ratio,
  max(c.thresh_share) AS dirty_thresh_max_ratio,
  sum(c.is_above_thresh) AS above_thresh_count,
  count(c.caller) AS callers_count,
  sum(CASE c.caller WHEN 'dirtier' THEN 1 ELSE 0 END) AS dirtier_count,
  sum(CASE c.caller WHEN 'flusher' THEN 1 ELSE 0 END) AS flusher_count,
  sum(CASE c.caller WHEN 'sampler' THEN 1 ELSE 0 END) AS sampler_count,
  sum(c.is_boosted) AS boosted_count
FROM chosen AS c
WHERE c.domain = 'global'
HAVING count(*) > 0
UNION ALL
SELECT
  c.domain,
  c.cgroup_ino,
  c.basis,
  count(*),
  avg(c.dirty_bytes),
  max(c.dirty_bytes),
  avg(c.bg_thresh_bytes),
  avg(c.thresh_bytes),
  min(c.thresh_bytes),
  avg(c.limit_bytes),
  avg(c.thresh_share),
  max(c.thresh_share),
  sum(c.is_above_thresh),
  count(c.caller),
  sum(CASE c.caller WHEN 'dirtier' THEN 1 ELSE 0 END),
  sum(CASE c.caller WHEN 'flusher' THEN 1 ELSE 0 END),
  sum(CASE c.caller WHEN 'sampler' THEN 1 ELSE 0 END),
  sum(c.is_boosted)
FROM chosen AS c
WHERE c.domain = 'memcg'
GROUP BY c.domain, c.cgroup_ino, c.basis;
