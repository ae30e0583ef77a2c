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
FROM _domain_sum AS s
CROSS JOIN wb_params AS p
WHERE p.cgroup_ino IS NULL OR s.cgroup_ino = p.cgroup_ino
ORDER BY s.domain, s.cgroup_ino, s.basis;

-- @view     _domain_sum
-- @summary  What the events say of each domain in the time of interest, summed
--   up.
-- @grain    domain; order domain, cgroup_ino
-- @column   domain TEXT global or memcg
-- @column   cgroup_ino INTEGER cgroup of the domain; 0 = the machine
-- @column   basis TEXT domain_dirty_state, global_dirty_state or
--   balance_dirty_pages: the event that told
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
-- @cost     280
CREATE VIEW _domain_sum AS
WITH
  chosen AS NOT MATERIALIZED (
    SELECT
      s.*,
      1.0 * s.dirty_bytes / nullif(s.thresh_bytes, 0) AS thresh_share,
      s.dirty_bytes > s.thresh_bytes AS is_above_thresh
    FROM _domain_state AS s
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(s.ts, b)
  ),
  -- The machine's of a stock kernel, millions of them as a rule.
  edge AS (
    SELECT
      min(w.state_first_seq) AS first_seq,
      max(w.state_last_seq) AS last_seq,
      max(w.state_after_seq) AS after_seq,
      EXISTS (
        SELECT 1 FROM wb_dirty_window AS d WHERE d.boosted_count > 0
      ) AS is_mixed
    FROM wb_window AS w
    WHERE NOT EXISTS (SELECT 1 FROM raw_wb_domain_dirty_state)
    HAVING max(w.state_after_seq) > min(w.state_first_seq)
  ),
  -- Of samples that say the same the last one tells how many they are; less
  -- those before the time of interest.
  counted AS (
    SELECT n.prev_seq AS seq, 0 AS is_before
    FROM edge AS e
    CROSS JOIN raw_global_dirty_state AS n
      ON n.seq > e.first_seq AND n.seq < e.after_seq
    WHERE e.is_mixed = 0 AND coalesce(n.repeats_count, 0) = 0
    UNION ALL
    SELECT e.last_seq, 0 FROM edge AS e WHERE e.is_mixed = 0
    UNION ALL
    SELECT e.first_seq, 1 FROM edge AS e WHERE e.is_mixed = 0
  ),
  stock AS (
    SELECT
      dirty_pages!(p) AS dirty,
      p.bg_thresh, p.thresh,
      hard_limit!(p) AS hard_limit,
      0 AS is_boosted,
      CASE c.is_before
        WHEN 1 THEN -coalesce(p.repeats_count, 0)
        ELSE coalesce(p.repeats_count, 0) + 1
      END AS samples
    FROM counted AS c
    CROSS JOIN raw_global_dirty_state AS p ON p.seq = c.seq
    UNION ALL
    -- One by one where some tell the thresholds of real-time tasks.
    SELECT
      g.dirty_bytes / u.page_bytes,
      g.bg_thresh_bytes / u.page_bytes,
      g.thresh_bytes / u.page_bytes,
      g.limit_bytes / u.page_bytes,
      g.is_boosted, 1
    FROM edge AS e
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_dirty_state AS g
      ON g.seq >= e.first_seq AND g.seq < e.after_seq
    WHERE e.is_mixed = 1
  ),
  machine AS (
    SELECT
      sum(s.samples) AS events_count,
      sum(CASE WHEN s.is_boosted = 0 THEN s.samples END) AS plain_count,
      sum(s.samples * s.dirty) AS dirty,
      max(s.dirty) AS dirty_max,
      sum(s.samples * s.bg_thresh) AS bg_thresh,
      sum(s.samples * s.thresh) AS thresh,
      min(s.thresh) AS thresh_min,
      sum(s.samples * s.hard_limit) AS hard_limit,
      sum(1.0 * s.samples * s.dirty / nullif(s.thresh, 0)) AS thresh_share,
      sum(CASE WHEN s.thresh <> 0 THEN s.samples END) AS thresh_count,
      max(1.0 * s.dirty / nullif(s.thresh, 0)) AS thresh_share_max,
      sum(CASE WHEN s.dirty > s.thresh THEN s.samples ELSE 0 END)
        AS above_thresh_count,
      sum(s.is_boosted) AS boosted_count
    FROM stock AS s
  )
SELECT
  'global' AS domain,
  0 AS cgroup_ino,
  'global_dirty_state' AS basis,
  m.events_count,
  1.0 * m.dirty / m.events_count * u.page_bytes AS dirty_bytes,
  m.dirty_max * u.page_bytes AS dirty_max_bytes,
  1.0 * m.bg_thresh / m.plain_count * u.page_bytes AS bg_thresh_bytes,
  1.0 * m.thresh / m.plain_count * u.page_bytes AS thresh_bytes,
  m.thresh_min * u.page_bytes AS thresh_min_bytes,
  1.0 * m.hard_limit / m.plain_count * u.page_bytes AS limit_bytes,
  m.thresh_share / m.thresh_count AS dirty_thresh_ratio,
  m.thresh_share_max AS dirty_thresh_max_ratio,
  m.above_thresh_count,
  0 AS callers_count,
  0 AS dirtier_count,
  0 AS flusher_count,
  0 AS sampler_count,
  m.boosted_count
FROM machine AS m
CROSS JOIN wb_units AS u
WHERE m.events_count > 0
UNION ALL
SELECT
  c.domain, c.cgroup_ino, c.basis,
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
GROUP BY c.domain, c.cgroup_ino, c.basis;

-- @view     _domain_state
-- @summary  Dirty pages and thresholds of each domain that throttles, but for
--   the machine's of a stock kernel. A patched kernel's wb_domain_dirty_state
--   tells those of all domains. Without it of a memory cgroup only the
--   balance_dirty_pages events tell that it throttled.
-- @grain    event; order ts
-- @column   domain TEXT global or memcg
-- @column   cgroup_ino INTEGER cgroup of the domain; 0 = the machine
-- @column   dirty_bytes INTEGER dirty and under writeback in the domain; NULL =
--   a flusher looked, which leaves out what is under writeback
-- @column   bg_thresh_bytes INTEGER where the flusher starts; NULL = not told,
--   or boosted
-- @column   thresh_bytes INTEGER dirty threshold; NULL = not told, or boosted
-- @column   limit_bytes INTEGER max(thresh, dirty_limit); NULL = not told, or
--   boosted
-- @column   is_boosted INTEGER 1: thresholds of a real-time task, a quarter and
--   more above those of others
-- @column   caller TEXT dirtier, flusher or sampler (/proc/vmstat, debugfs);
--   NULL = not told
-- @column   basis TEXT domain_dirty_state or balance_dirty_pages
-- @source   kernel-tracepoints/; mm/page-writeback.c domain_dirty_limits()
CREATE VIEW _domain_state AS
WITH
  -- No row where a patched kernel tells all.
  stock AS (
    SELECT u.page_bytes
    FROM wb_units AS u
    WHERE NOT EXISTS (SELECT 1 FROM raw_wb_domain_dirty_state)
  ),
  told AS (
    SELECT
      d.ts,
      CASE d.domain WHEN 0 THEN 'global' ELSE 'memcg' END AS domain,
      d.cgroup_ino, d.dirty, d.bg_thresh, d.thresh,
      CASE WHEN d.thresh > d.dirty_limit THEN d.thresh ELSE d.dirty_limit END
        AS hard_limit,
      CASE WHEN d.rt_boost <> 0 THEN 1 ELSE 0 END AS is_boosted,
      CASE d.caller
        WHEN 0 THEN 'dirtier'
        WHEN 1 THEN 'flusher'
        WHEN 2 THEN 'sampler'
      END AS caller
    FROM raw_wb_domain_dirty_state AS d
  )
SELECT
  t.ts, t.domain, t.cgroup_ino,
  CASE WHEN t.caller <> 'flusher' THEN t.dirty * u.page_bytes END
    AS dirty_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.bg_thresh * u.page_bytes END
    AS bg_thresh_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.thresh * u.page_bytes END AS thresh_bytes,
  CASE WHEN t.is_boosted = 0 THEN t.hard_limit * u.page_bytes END
    AS limit_bytes,
  t.is_boosted, t.caller,
  'domain_dirty_state' AS basis
FROM told AS t
CROSS JOIN wb_units AS u
UNION ALL
SELECT
  r.ts,
  'memcg',
  coalesce(r.cgroup_ino, c.cgroup_ino),
  r.dirty * k.page_bytes,
  NULL, NULL,
  CASE WHEN d.has_limit = 1 THEN r."limit" * k.page_bytes END,
  0,
  'dirtier',
  'balance_dirty_pages'
FROM stock AS k
CROSS JOIN wb_throttle_domain AS d
JOIN raw_balance_dirty_pages AS r ON r.seq = d.seq
LEFT JOIN wb_cgroup AS c ON c.path = r.cgroup_path
WHERE d.domain = 'memcg';
