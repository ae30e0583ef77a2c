-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    bdi_dirty
-- @title    Dirty pages of each device against its threshold
-- @order    44
-- @summary  Each bdi's dirty and writeback pages, its share of the threshold.
-- @read     wb_dirty should stay near wb_setpoint; a bdi above wb_thresh has
--   more than its share and its writers are throttled more. The events tell
--   dirty and writeback pages of a bdi only as one sum, and only while a task
--   is throttled. position is NULL where the kernel did not record the limit of
--   a memory cgroup (up to 6.14.1).
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER balance_dirty_pages events in the window
-- @column   wb_dirty_bytes INTEGER dirty and writeback pages, mean of the
--   events
-- @column   wb_dirty_max_bytes INTEGER largest
-- @column   wb_setpoint_bytes INTEGER this wb's share of the setpoint, mean;
--   NULL on 32-bit kernels where it wraps
-- @column   wb_thresh_bytes INTEGER its share of thresh: wb_setpoint scaled by
--   thresh / setpoint; NULL when only a memory cgroup throttled
-- @column   dirty_bytes INTEGER dirty pages of the domain, mean
-- @column   setpoint_bytes INTEGER of the domain, mean
-- @column   limit_bytes INTEGER of the domain, mean; NULL = not recorded
-- @column   position_ratio REAL place of dirty between freerun and limit, of
--   the means
-- @column   memcg_ratio REAL share of the events in which the limits of a
--   memory cgroup throttled; NULL = not known
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   wb_dirty_bytes neutral: data that programs wrote to this device and
--   that still waits in memory for it
-- @metric   position_ratio neutral: how full memory is with data that waits for
--   disks: from 0 % on programs are slowed down, 50 % is what the kernel aims
--   at, at 100 % they stop
-- @source   mm/page-writeback.c balance_dirty_pages(), wb_position_ratio()
-- @cost     260
WITH
  told AS (
    SELECT
      g.*,
      coalesce(g.cgroup_ino, k.cgroup_ino) AS wb_cgroup_ino,
      -- setpoint * wb_thresh, in 32 bits.
      u.long_bytes = 4 AND g.setpoint_max * g.limit_max >= 1 << 32 AS wraps
    FROM _bdi_dirty_sum AS g
    CROSS JOIN wb_units AS u
    LEFT JOIN wb_cgroup AS k ON k.path = g.cgroup_path
  ),
  summed AS (
    SELECT
      t.window_index, t.bdi,
      t.wb_cgroup_ino AS cgroup_ino,
      sum(t.events_count) AS events_count,
      1.0 * sum(t.wb_dirty) / sum(t.events_count) AS wb_dirty,
      max(t.wb_dirty_max) AS wb_dirty_max,
      1.0 * sum(CASE WHEN NOT t.is_rt AND t.wraps IS NOT 1
        THEN t.wb_setpoint END)
        / sum(CASE WHEN NOT t.is_rt AND t.wraps IS NOT 1
          THEN t.events_count END) AS wb_setpoint,
      1.0 * sum(CASE
        WHEN NOT t.is_rt AND t.domain = 'global' AND t.wraps IS NOT 1
        THEN t.wb_setpoint END)
        / nullif(sum(CASE WHEN NOT t.is_rt AND t.domain = 'global'
          THEN t.setpoint END), 0) AS machine_share,
      1.0 * sum(t.dirty) / sum(t.events_count) AS dirty,
      1.0 * sum(CASE WHEN NOT t.is_rt THEN t.setpoint END)
        / sum(CASE WHEN NOT t.is_rt THEN t.events_count END) AS setpoint,
      1.0 * sum(CASE WHEN NOT t.is_rt AND t.has_limit THEN t.hard_limit END)
        / sum(CASE WHEN NOT t.is_rt AND t.has_limit
          THEN t.events_count END) AS hard_limit,
      -- Of the events that tell all three.
      1.0 * sum(CASE WHEN NOT t.is_rt AND t.has_limit
        THEN t.dirty - 2 * t.setpoint + t.hard_limit END)
        / nullif(2 * sum(CASE WHEN NOT t.is_rt AND t.has_limit
          THEN t.hard_limit - t.setpoint END), 0) AS position_ratio,
      1.0 * sum(CASE t.domain WHEN 'memcg' THEN t.events_count
          WHEN 'global' THEN 0 END)
        / sum(CASE WHEN t.domain IS NOT NULL THEN t.events_count END)
        AS memcg_ratio
    FROM told AS t
    CROSS JOIN wb_params AS p
    WHERE p.cgroup_ino IS NULL OR t.wb_cgroup_ino = p.cgroup_ino
    GROUP BY t.window_index, t.bdi, t.wb_cgroup_ino
  )
SELECT
  w.window_start_ns, s.bdi, s.cgroup_ino, s.events_count,
  CAST(s.wb_dirty * u.page_bytes AS INTEGER) AS wb_dirty_bytes,
  s.wb_dirty_max * u.page_bytes AS wb_dirty_max_bytes,
  CAST(s.wb_setpoint * u.page_bytes AS INTEGER) AS wb_setpoint_bytes,
  CAST(s.machine_share * d.thresh_bytes AS INTEGER) AS wb_thresh_bytes,
  CAST(s.dirty * u.page_bytes AS INTEGER) AS dirty_bytes,
  CAST(s.setpoint * u.page_bytes AS INTEGER) AS setpoint_bytes,
  CAST(s.hard_limit * u.page_bytes AS INTEGER) AS limit_bytes,
  s.position_ratio, s.memcg_ratio,
  w.lost_gaps_count
FROM summed AS s
CROSS JOIN wb_units AS u
JOIN wb_window AS w ON w.window_index = s.window_index
LEFT JOIN wb_dirty_window AS d ON d.window_index = s.window_index
ORDER BY w.window_start_ns, s.bdi, s.cgroup_ino;

-- @view     _bdi_dirty_sum
-- @summary  Events of each wb and window, added up in the kernel's units.
-- @grain    window, wb, domain; order window_index, bdi, cgroup_ino
-- @column   window_index INTEGER window
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb
-- @column   cgroup_path TEXT its path, in kernels that record that instead
-- @column   is_rt INTEGER 1: of real-time tasks
-- @column   domain TEXT whose limits throttled: global or memcg; NULL = unknown
-- @column   has_limit INTEGER as in wb_throttle_domain
-- @column   events_count INTEGER events
-- @column   wb_dirty INTEGER pages, sum over the events
-- @column   wb_dirty_max INTEGER pages, the highest
-- @column   wb_setpoint INTEGER pages, sum
-- @column   dirty INTEGER pages, sum
-- @column   setpoint INTEGER pages, sum
-- @column   hard_limit INTEGER pages, sum of limit
-- @column   setpoint_max INTEGER pages, the highest; NULL = all are of one wb
-- @column   limit_max INTEGER pages, the highest; NULL likewise
CREATE VIEW _bdi_dirty_sum AS
WITH
  chosen AS (
    SELECT
      r.seq, w.window_index, r.tid, r.bdi, r.cgroup_ino, r.cgroup_path,
      r.wb_dirty, r.wb_setpoint, r.dirty, r.setpoint,
      r."limit" AS hard_limit
    FROM wb_window AS w
    CROSS JOIN wb_params AS p
    CROSS JOIN raw_balance_dirty_pages AS r
      ON r.seq >= w.throttle_first_seq AND r.seq < w.throttle_after_seq
    WHERE p.bdi IS NULL OR r.bdi = p.bdi
  ),
  -- The first and the last wb of each thread, found in an index that ingest
  -- made.
  low_wb AS (
    SELECT k.tid, r.bdi, r.cgroup_ino
    FROM (SELECT DISTINCT t.tid FROM wb_task AS t) AS k
    JOIN raw_balance_dirty_pages AS r
      ON r.seq = (
        SELECT o.seq
        FROM raw_balance_dirty_pages AS o
        WHERE o.tid = k.tid
        ORDER BY o.bdi, o.cgroup_ino
        LIMIT 1
      )
  ),
  high_wb AS (
    SELECT r.bdi, r.cgroup_ino
    FROM low_wb AS k
    JOIN raw_balance_dirty_pages AS r
      ON r.seq = (
        SELECT o.seq
        FROM raw_balance_dirty_pages AS o
        WHERE o.tid = k.tid
        ORDER BY o.bdi DESC, o.cgroup_ino DESC
        LIMIT 1
      )
  ),
  -- The wb, where all events are alike; else no row.
  only_wb AS (
    SELECT min(a.bdi) AS bdi, min(a.cgroup_ino) AS cgroup_ino
    FROM (
      SELECT l.bdi, l.cgroup_ino
      FROM low_wb AS l
      UNION ALL
      SELECT h.bdi, h.cgroup_ino
      FROM high_wb AS h
    ) AS a
    CROSS JOIN wb_params AS p
    WHERE NOT EXISTS (SELECT 1 FROM wb_throttle_domain)
      AND NOT EXISTS (SELECT 1 FROM wb_thread AS t WHERE t.is_real_time = 1)
      AND NOT EXISTS (SELECT 1 FROM wb_cgroup)
      AND NOT EXISTS (SELECT 1 FROM wb_units AS u WHERE u.long_bytes = 4)
    HAVING min(a.bdi) = max(a.bdi)
      AND coalesce(min(a.cgroup_ino), 0) = coalesce(max(a.cgroup_ino), 0)
      AND min(p.bdi IS NULL OR a.bdi = p.bdi) = 1
  )
-- Sums in pages, apart where values differ in meaning.
-- Of most runs: one wb and the machine's limits. Rows come in the order of
-- windows, so nothing is sorted.
SELECT
  e.window_index, o.bdi, o.cgroup_ino,
  NULL AS cgroup_path,
  0 AS is_rt,
  'global' AS domain,
  1 AS has_limit,
  count(*) AS events_count,
  sum(r.wb_dirty) AS wb_dirty,
  max(r.wb_dirty) AS wb_dirty_max,
  sum(r.wb_setpoint) AS wb_setpoint,
  sum(r.dirty) AS dirty,
  sum(r.setpoint) AS setpoint,
  sum(r."limit") AS hard_limit,
  NULL AS setpoint_max,
  NULL AS limit_max
FROM wb_window AS e
CROSS JOIN only_wb AS o
CROSS JOIN raw_balance_dirty_pages AS r
  ON r.seq >= e.throttle_first_seq AND r.seq < e.throttle_after_seq
GROUP BY e.window_index
UNION ALL
SELECT
  c.window_index, c.bdi, c.cgroup_ino, c.cgroup_path,
  -- Real-time tasks are told higher limits: those of others count.
  c.tid IN (SELECT t.tid FROM wb_thread AS t WHERE t.is_real_time = 1),
  CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END,
  d.seq IS NULL OR d.has_limit = 1,
  count(*),
  sum(c.wb_dirty),
  max(c.wb_dirty),
  sum(c.wb_setpoint),
  sum(c.dirty),
  sum(c.setpoint),
  sum(c.hard_limit),
  max(c.setpoint),
  max(c.hard_limit)
FROM chosen AS c
LEFT JOIN wb_throttle_domain AS d ON d.seq = c.seq
WHERE NOT EXISTS (SELECT 1 FROM only_wb)
GROUP BY 1, 2, 3, 4, 5, 6, 7;
