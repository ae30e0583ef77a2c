-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages of each domain that throttles: the machine and memory cgroups.

-- @view     wb_domain_sum
-- @shared
-- @summary  What the events say of each domain in the time of interest, summed
--   up.
-- @grain    domain; order domain, cgroup_ino
-- @events   writeback:global_dirty_state|writeback:balance_dirty_pages|
--   writeback:wb_domain_dirty_state
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
CREATE VIEW wb_domain_sum AS
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
    SELECT b.first_seq, b.after_seq
    FROM wb_dirty_bounds AS b
    WHERE b.after_seq > b.first_seq
      AND NOT EXISTS (SELECT 1 FROM raw_wb_domain_dirty_state)
  ),
  plain_edge AS (
    SELECT e.first_seq, e.after_seq
    FROM edge AS e
    WHERE NOT EXISTS (SELECT 1 FROM wb_dirty_boost)
  ),
  -- Of samples that say the same the last one, and how many they are.
  stock AS (
    SELECT p.dirty, p.bg_thresh, p.thresh, p.hard_limit, 0 AS is_boosted,
      p.repeats_count + 1 AS samples
    FROM plain_edge AS e
    CROSS JOIN wb_dirty_sample AS n
      ON n.seq > e.first_seq AND n.seq < e.after_seq
    CROSS JOIN wb_dirty_sample AS p ON p.seq = n.prev_seq
    WHERE n.repeats_count = 0
    UNION ALL
    SELECT l.dirty, l.bg_thresh, l.thresh, l.hard_limit, 0, l.repeats_count + 1
    FROM plain_edge AS e
    CROSS JOIN wb_dirty_sample AS l
      ON l.seq = (
        SELECT max(s.seq) FROM wb_dirty_sample AS s WHERE s.seq < e.after_seq
      )
    UNION ALL
    -- Less those before the time of interest.
    SELECT f.dirty, f.bg_thresh, f.thresh, f.hard_limit, 0, -f.repeats_count
    FROM plain_edge AS e
    CROSS JOIN wb_dirty_sample AS f ON f.seq = e.first_seq
    UNION ALL
    -- One by one where some tell the thresholds of real-time tasks.
    SELECT
      g.dirty,
      CASE WHEN b.seq IS NULL THEN g.bg_thresh END,
      CASE WHEN b.seq IS NULL THEN g.thresh END,
      CASE WHEN b.seq IS NULL THEN g.hard_limit END,
      b.seq IS NOT NULL,
      1
    FROM (SELECT 1 FROM wb_dirty_boost LIMIT 1) AS o
    CROSS JOIN edge AS e
    CROSS JOIN wb_dirty_sample AS g
      ON g.seq >= e.first_seq AND g.seq < e.after_seq
    LEFT JOIN wb_dirty_boost AS b ON b.seq = g.seq
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
WHERE c.basis <> 'global_dirty_state'
GROUP BY c.domain, c.cgroup_ino, c.basis;

-- @view     _domain_state
-- @summary  Dirty pages and thresholds of each domain that throttles: the
--   machine and memory cgroups. A patched kernel's wb_domain_dirty_state tells
--   those of all domains. Without it global_dirty_state tells the machine's,
--   and of a memory cgroup only the balance_dirty_pages events tell that it
--   throttled.
-- @grain    event; order seq
-- @events   writeback:global_dirty_state|writeback:balance_dirty_pages|
--   writeback:wb_domain_dirty_state
-- @column   seq INTEGER order of all records
-- @column   tid INTEGER thread that asked
-- @column   domain TEXT global or memcg
-- @column   cgroup_ino INTEGER cgroup of the domain; 0 = the machine
-- @column   dirty_bytes INTEGER dirty and under writeback in the domain; NULL =
--   a flusher looked, which leaves out what is under writeback
-- @column   available_bytes INTEGER memory that could be dirty; NULL = not told
-- @column   bg_thresh_bytes INTEGER where the flusher starts; NULL = not told,
--   or boosted
-- @column   thresh_bytes INTEGER dirty threshold; NULL = not told, or boosted
-- @column   limit_bytes INTEGER max(thresh, dirty_limit); NULL = not told, or
--   boosted
-- @column   is_boosted INTEGER 1: thresholds of a real-time task, a quarter and
--   more above those of others; on stock kernels found by comparison
-- @column   caller TEXT dirtier, flusher or sampler (/proc/vmstat, debugfs);
--   NULL = not told
-- @column   basis TEXT domain_dirty_state, global_dirty_state or
--   balance_dirty_pages
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
      d.seq, d.ts, d.tid,
      CASE d.domain WHEN 0 THEN 'global' ELSE 'memcg' END AS domain,
      d.cgroup_ino, d.avail, d.dirty, d.bg_thresh, d.thresh,
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
  t.seq, t.ts, t.tid, t.domain, t.cgroup_ino,
  CASE WHEN t.caller <> 'flusher' THEN t.dirty * u.page_bytes END
    AS dirty_bytes,
  t.avail * u.page_bytes AS available_bytes,
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
  g.seq, g.ts, g.tid,
  'global',
  0,
  g.dirty * k.page_bytes,
  NULL,
  CASE WHEN b.seq IS NULL THEN g.bg_thresh * k.page_bytes END,
  CASE WHEN b.seq IS NULL THEN g.thresh * k.page_bytes END,
  CASE WHEN b.seq IS NULL THEN g.hard_limit * k.page_bytes END,
  CASE WHEN b.seq IS NULL THEN 0 ELSE 1 END,
  NULL,
  'global_dirty_state'
FROM stock AS k
CROSS JOIN wb_dirty_sample AS g
LEFT JOIN wb_dirty_boost AS b ON b.seq = g.seq
UNION ALL
SELECT
  r.seq, r.ts, r.tid,
  'memcg',
  coalesce(r.cgroup_ino, c.cgroup_ino),
  r.dirty * k.page_bytes,
  NULL, NULL, NULL,
  CASE WHEN d.has_limit = 1 THEN r."limit" * k.page_bytes END,
  0,
  'dirtier',
  'balance_dirty_pages'
FROM stock AS k
CROSS JOIN wb_throttle_domain AS d
JOIN raw_balance_dirty_pages AS r ON r.seq = d.seq
LEFT JOIN wb_cgroup AS c ON c.path = r.cgroup_path
WHERE d.domain = 'memcg';
