-- SPDX-License-Identifier: Apache-2.0
-- @query    bdi_dirty
-- @title    Dirty pages of each device against its threshold
-- @order    44
-- @summary  Each bdi's dirty and writeback pages, its share of the threshold.
-- @read     wb_dirty should stay near wb_setpoint; a bdi above wb_thresh has
--   more than its share and its writers are held up more. The events tell dirty
--   and writeback pages of a bdi only as one sum, and only while a task is
--   throttled. position is NULL where the kernel did not record the limit of a
--   memory cgroup (up to 6.14.1).
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @needs    wb_throttle, wb_rt_task, raw_global_dirty_state, wb_window,
--   wb_lost_window, wb_bounds, wb_params, wb_units
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   window_start_ns INTEGER trace clock
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
-- @column   position_ratio REAL mean place of dirty between freerun and limit
-- @column   memcg_ratio REAL share of the events in which the limits of a
--   memory cgroup throttled; NULL = not known
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @metric   wb_dirty_bytes neutral: data that programs wrote to this device and
--   that still waits in memory for it
-- @metric   position_ratio neutral: how full memory is with data that waits for
--   disks: from 0 % on programs are slowed down, 50 % is what the kernel aims
--   at, at 100 % they stop
-- @source   mm/page-writeback.c balance_dirty_pages(), wb_position_ratio()
WITH
  summed AS (
    SELECT
      (t.ts - b.start_ts) / p.window_ns AS window_index,
      t.bdi,
      t.cgroup_ino,
      count(*) AS events_count,
      avg(t.wb_dirty_bytes) AS wb_dirty,
      max(t.wb_dirty_bytes) AS wb_dirty_max,
      -- Real-time tasks are told higher limits: those of others count.
      avg(CASE WHEN r.tid IS NULL THEN t.wb_setpoint_bytes END)
        AS wb_setpoint,
      avg(CASE WHEN t.domain = 'global' AND r.tid IS NULL
        THEN t.wb_setpoint_bytes END)
        AS machine_wb_setpoint,
      avg(CASE WHEN t.domain = 'global' AND r.tid IS NULL
        THEN t.setpoint_bytes END)
        AS machine_setpoint,
      avg(t.dirty_bytes) AS dirty,
      avg(CASE WHEN r.tid IS NULL THEN t.setpoint_bytes END) AS setpoint,
      avg(CASE WHEN r.tid IS NULL THEN t.limit_bytes END) AS hard_limit,
      -- freerun = 2 * setpoint - limit.
      avg(
        CASE
          WHEN r.tid IS NULL
            THEN 1.0 * (t.dirty_bytes - 2 * t.setpoint_bytes + t.limit_bytes)
              / nullif(2 * (t.limit_bytes - t.setpoint_bytes), 0)
        END
      ) AS position_ratio,
      avg(CASE t.domain WHEN 'memcg' THEN 1.0 WHEN 'global' THEN 0.0 END)
        AS memcg_ratio
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    LEFT JOIN wb_rt_task AS r ON r.tid = t.tid
    WHERE t.ts >= b.start_ts
      AND t.ts < b.end_ts
      AND (p.bdi IS NULL OR t.bdi = p.bdi)
      AND (p.cgroup_ino IS NULL OR t.cgroup_ino = p.cgroup_ino)
    GROUP BY 1, t.bdi, t.cgroup_ino
  ),
  machine AS (
    SELECT
      (g.ts - b.start_ts) / p.window_ns AS window_index,
      avg(g.thresh) * u.page_bytes AS thresh_bytes
    FROM raw_global_dirty_state AS g
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_units AS u
    WHERE g.ts >= b.start_ts
      AND g.ts < b.end_ts
      AND g.tid NOT IN (SELECT r.tid FROM wb_rt_task AS r)
    GROUP BY 1, u.page_bytes
  )
SELECT
  w.window_start_ns,
  s.bdi,
  s.cgroup_ino,
  s.events_count,
  CAST(s.wb_dirty AS INTEGER) AS wb_dirty_bytes,
  s.wb_dirty_max AS wb_dirty_max_bytes,
  CAST(s.wb_setpoint AS INTEGER) AS wb_setpoint_bytes,
  CAST(
    s.machine_wb_setpoint * d.thresh_bytes / nullif(s.machine_setpoint, 0)
    AS INTEGER
  ) AS wb_thresh_bytes,
  CAST(s.dirty AS INTEGER) AS dirty_bytes,
  CAST(s.setpoint AS INTEGER) AS setpoint_bytes,
  CAST(s.hard_limit AS INTEGER) AS limit_bytes,
  s.position_ratio,
  s.memcg_ratio,
  coalesce(l.lost_gaps_count, 0) AS lost_gaps_count
FROM summed AS s
JOIN wb_window AS w ON w.window_index = s.window_index
LEFT JOIN machine AS d ON d.window_index = s.window_index
LEFT JOIN wb_lost_window AS l ON l.window_index = s.window_index
ORDER BY w.window_start_ns, s.bdi, s.cgroup_ino;
