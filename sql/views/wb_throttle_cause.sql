-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_cause
-- @summary  Why each throttled task had to sleep: its pos_ratio, how much of
--   that is the machine's and how much its wb's, and what the kernel thought of
--   the bdi's bandwidth.
-- @grain    balance_dirty_pages event that a task slept after; order seq
-- @needs    wb_throttle, wb_throttle_charge, wb_bandwidth, wb_stall_rule,
--   wb_units
-- @events   writeback:balance_dirty_pages
-- @optional writeback:bdi_dirty_ratelimit, writeback:global_dirty_state
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   ts INTEGER ns, of the event
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device
-- @column   sleep_ts INTEGER ns, start of the sleep
-- @column   slept_ns INTEGER how long
-- @column   slept_basis TEXT as in wb_throttle
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   cause TEXT over the limit, above setpoint, bdi slower than its
--   share, falling bdi bandwidth, slow bdi bandwidth, memcg domain, strictlimit
--   or unknown; see docs/stalls.md
-- @column   domain TEXT whose limits decided: global or memcg; NULL = the
--   events do not tell; as in wb_throttle
-- @column   bandwidth_ts INTEGER ns, the last bdi_dirty_ratelimit of this wb
-- @column   avg_write_bw_bytes_per_s INTEGER that it told
-- @column   top_write_bw_bytes_per_s INTEGER highest of its last 16 updates
-- @column   pos_ratio REAL task_ratelimit over dirty_ratelimit; not in 0 to 1
-- @column   global_pos_ratio REAL factor of the machine's dirty pages, 0 to 2
-- @column   wb_pos_ratio REAL factor of the wb's dirty pages: the quotient
-- @column   global_share_ratio REAL share of the machine's factor in what both
--   take away; the rest is the wb's
-- @source   mm/page-writeback.c wb_position_ratio(), pos_ratio_polynom(),
--   balance_dirty_pages(); docs/stalls.md
-- @materialize
CREATE VIEW wb_throttle_cause AS
WITH
  slept AS (
    SELECT
      t.seq,
      t.ts,
      t.tid,
      t.bdi,
      t.sleep_ts,
      t.slept_ns,
      t.slept_basis,
      t.cgroup_ino AS told_cgroup_ino,
      coalesce(t.cgroup_ino, 1) AS cgroup_ino,
      t.domain,
      t.limit_bytes,
      t.setpoint_bytes,
      t.dirty_bytes,
      t.dirty_ratelimit_bytes_per_s AS base_bytes_per_s,
      t.task_ratelimit_bytes_per_s AS task_bytes_per_s
    FROM wb_throttle_charge AS c
    CROSS JOIN wb_throttle AS t ON t.seq = c.seq
    WHERE c.slept_ns > 0
  ),
  bandwidth AS (
    SELECT
      row_number() OVER (ORDER BY w.ts, w.bdi, w.cgroup_ino) AS update_id,
      w.ts,
      w.bdi,
      coalesce(w.cgroup_ino, 1) AS cgroup_ino,
      w.avg_write_bw_bytes_per_s,
      max(w.avg_write_bw_bytes_per_s) OVER (
        PARTITION BY w.bdi, w.cgroup_ino ORDER BY w.ts
        ROWS BETWEEN 15 PRECEDING AND CURRENT ROW
      ) AS top_write_bw_bytes_per_s
    FROM wb_bandwidth AS w
  ),
  -- Each event with the last update of its wb before it.
  steps AS (
    SELECT c.*, 1 AS step, NULL AS update_id
    FROM slept AS c
    UNION ALL
    SELECT
      NULL,
      w.ts,
      NULL,
      w.bdi,
      NULL,
      NULL,
      NULL,
      NULL,
      w.cgroup_ino,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
      0,
      w.update_id
    FROM bandwidth AS w
  ),
  updated AS (
    SELECT
      s.*,
      max(s.update_id) OVER (
        PARTITION BY s.bdi, s.cgroup_ino ORDER BY s.ts, s.step
        ROWS UNBOUNDED PRECEDING
      ) AS last_update_id
    FROM steps AS s
  ),
  placed AS MATERIALIZED (
    SELECT
      c.*,
      -- Of free run, of the setpoint, of the limit: 1, 0 and -1.
      1.0 * (c.setpoint_bytes - c.dirty_bytes)
        / nullif(c.limit_bytes - c.setpoint_bytes, 0) AS x,
      1.0 * c.task_bytes_per_s / nullif(c.base_bytes_per_s, 0) AS pos_ratio,
      w.ts AS bandwidth_ts,
      w.avg_write_bw_bytes_per_s,
      w.top_write_bw_bytes_per_s
    FROM updated AS c
    LEFT JOIN bandwidth AS w ON w.update_id = c.last_update_id
    WHERE c.step = 1
  ),
  factors AS MATERIALIZED (
    SELECT
      p.*,
      CASE
        WHEN p.domain IS NULL OR p.domain <> 'global' THEN NULL
        WHEN p.limit_bytes <= p.setpoint_bytes THEN NULL
        -- The limit is older than the one that decided.
        WHEN p.x <= -1 AND p.pos_ratio > 0 THEN NULL
        WHEN p.x <= -1 THEN 0.0
        WHEN p.x >= 1 THEN 2.0
        ELSE 1 + p.x * p.x * p.x
      END AS global_pos_ratio
    FROM placed AS p
  ),
  losses AS MATERIALIZED (
    SELECT
      f.*,
      f.pos_ratio / nullif(f.global_pos_ratio, 0) AS wb_pos_ratio,
      CASE WHEN f.global_pos_ratio < 1 THEN 1 - f.global_pos_ratio ELSE 0 END
        AS global_loss,
      CASE
        WHEN f.pos_ratio < f.global_pos_ratio
          THEN 1 - f.pos_ratio / f.global_pos_ratio
        ELSE 0
      END AS wb_loss
    FROM factors AS f
  ),
  shares AS MATERIALIZED (
    SELECT
      l.*,
      CASE
        WHEN l.pos_ratio < 1 AND l.global_pos_ratio IS NOT NULL
          THEN l.global_loss / nullif(l.global_loss + l.wb_loss, 0)
      END AS global_share_ratio
    FROM losses AS l
  )
SELECT
  s.seq,
  s.ts,
  s.tid,
  s.bdi,
  s.sleep_ts,
  s.slept_ns,
  s.slept_basis,
  s.told_cgroup_ino AS cgroup_ino,
  CASE
    WHEN s.domain IS NULL OR s.pos_ratio IS NULL THEN 'unknown'
    WHEN s.domain = 'memcg' THEN 'memcg domain'
    WHEN s.limit_bytes <= s.setpoint_bytes THEN 'unknown'
    WHEN s.global_pos_ratio IS NULL THEN 'above setpoint'
    WHEN s.pos_ratio = 0 AND s.global_pos_ratio < r.at_limit_ratio
      THEN 'over the limit'
    -- Below free run only the bdi's own limit throttles.
    WHEN s.x >= 1 + r.freerun_margin_ratio THEN 'strictlimit'
    -- The wb's factor is a quarter at least without strictlimit. Pages/s are
    -- whole numbers, so a low rate can round to 0.
    WHEN s.pos_ratio = 0
      AND s.base_bytes_per_s * s.global_pos_ratio / 4 >= 2 * u.page_bytes
      THEN 'strictlimit'
    WHEN s.pos_ratio = 0 THEN 'unknown'
    WHEN s.global_share_ratio >= r.most_ratio THEN 'above setpoint'
    WHEN s.global_share_ratio < r.most_ratio THEN 'bdi slower than its share'
    WHEN s.avg_write_bw_bytes_per_s
      < s.top_write_bw_bytes_per_s * r.falling_ratio
      THEN 'falling bdi bandwidth'
    ELSE 'slow bdi bandwidth'
  END AS cause,
  s.domain,
  s.bandwidth_ts,
  s.avg_write_bw_bytes_per_s,
  s.top_write_bw_bytes_per_s,
  s.pos_ratio,
  s.global_pos_ratio,
  s.wb_pos_ratio,
  s.global_share_ratio
FROM shares AS s
CROSS JOIN wb_stall_rule AS r
CROSS JOIN wb_units AS u;
