-- SPDX-License-Identifier: Apache-2.0
-- Dirty pages and their limits.

-- @query    bdi_control
-- @title    Dirty pages and rates of each bdi, step by step
-- @summary  What balance_dirty_pages() saw of each bdi and made of it: dirty
--   pages against their setpoints, rates of tasks, bandwidth.
-- @read     The loop of dirty throttling: dirty above its setpoint lowers
--   task_ratelimit below dirty_ratelimit, which follows write_bw divided by the
--   tasks. Values are means of the events in which a task was charged or slept;
--   windows without one have no row, and nothing is known of them. A task is
--   throttled by the limits of the machine or by those of its memory cgroup,
--   whichever are nearer: these stand in columns of their own.
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages
-- @optional writeback:bdi_dirty_ratelimit
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   steps_count INTEGER balance_dirty_pages events that charged pages
--   or were slept after
-- @column   dirty_bytes REAL dirty and writeback pages of the machine, where
--   its limits throttled; NULL = they did not in the window
-- @column   freerun_bytes REAL 2 setpoint - limit: below, no task is throttled
-- @column   setpoint_bytes REAL of the machine, without real-time tasks
-- @column   limit_bytes REAL of the machine, without real-time tasks
-- @column   memcg_dirty_bytes REAL those of the memory cgroup, where its limits
--   throttled; NULL = they did not in the window
-- @column   memcg_setpoint_bytes REAL of the memory cgroup
-- @column   memcg_limit_bytes REAL of the memory cgroup; NULL = not recorded
--   (up to 6.14.1)
-- @column   wb_dirty_bytes REAL dirty and writeback pages of this wb
-- @column   wb_setpoint_bytes REAL this wb's share of setpoint
-- @column   memcg_wb_setpoint_bytes REAL its share of memcg_setpoint
-- @column   task_ratelimit_bytes_per_s REAL rate that its tasks may dirty at,
--   mean
-- @column   task_ratelimit_least_bytes_per_s INTEGER lowest
-- @column   task_ratelimit_most_bytes_per_s INTEGER highest
-- @column   dirty_ratelimit_bytes_per_s REAL base rate of a task
-- @column   write_bw_bytes_per_s REAL estimated bandwidth; NULL = not updated
--   in the window
-- @column   avg_write_bw_bytes_per_s REAL the smoothed estimate
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @source   graphs balance_dirty_pages-pages and -bandwidth of 2011-02;
--   mm/page-writeback.c balance_dirty_pages(), wb_update_dirty_ratelimit()
-- @cost     280
WITH
  step AS (
    SELECT
      (t.ts - b.start_ts) / p.window_ns AS window_index,
      t.tid, t.bdi, t.cgroup_ino, t.domain, t.dirty_bytes, t.setpoint_bytes,
      t.limit_bytes, t.wb_dirty_bytes, t.wb_setpoint_bytes,
      t.task_ratelimit_bytes_per_s, t.dirty_ratelimit_bytes_per_s
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE t.is_step = 1
      AND in_time!(t.ts, b)
      AND of_wb!(t, p)
  ),
  judged AS (
    SELECT
      s.*,
      -- Real-time tasks are told higher limits: those of others count.
      s.tid IN (SELECT k.tid FROM wb_thread AS k WHERE k.is_real_time = 1)
        AS is_rt
    FROM step AS s
  ),
  cell AS (
    SELECT
      j.window_index, j.bdi, j.cgroup_ino,
      1 AS is_step,
      j.domain, j.dirty_bytes,
      CASE WHEN NOT j.is_rt THEN j.setpoint_bytes END AS setpoint_bytes,
      CASE WHEN NOT j.is_rt THEN j.limit_bytes END AS limit_bytes,
      j.wb_dirty_bytes,
      CASE WHEN NOT j.is_rt THEN j.wb_setpoint_bytes END AS wb_setpoint_bytes,
      j.task_ratelimit_bytes_per_s, j.dirty_ratelimit_bytes_per_s,
      NULL AS write_bw_bytes_per_s,
      NULL AS avg_write_bw_bytes_per_s
    FROM judged AS j
    UNION ALL
    SELECT
      (r.ts - b.start_ts) / p.window_ns,
      r.bdi, r.cgroup_ino, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      r.write_bw_bytes_per_s, r.avg_write_bw_bytes_per_s
    FROM wb_bandwidth AS r
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE in_time!(r.ts, b)
      AND of_wb!(r, p)
  ),
  mean AS (
    SELECT
      c.window_index, c.bdi, c.cgroup_ino,
      sum(c.is_step) AS steps_count,
      avg(CASE WHEN c.domain = 'global' THEN c.dirty_bytes END)
        AS dirty_bytes,
      avg(CASE WHEN c.domain = 'global' THEN c.setpoint_bytes END)
        AS setpoint_bytes,
      avg(CASE WHEN c.domain = 'global' THEN c.limit_bytes END)
        AS limit_bytes,
      avg(CASE WHEN c.domain = 'global' THEN c.wb_setpoint_bytes END)
        AS wb_setpoint_bytes,
      avg(CASE WHEN c.domain = 'memcg' THEN c.dirty_bytes END)
        AS memcg_dirty_bytes,
      avg(CASE WHEN c.domain = 'memcg' THEN c.setpoint_bytes END)
        AS memcg_setpoint_bytes,
      avg(CASE WHEN c.domain = 'memcg' THEN c.limit_bytes END)
        AS memcg_limit_bytes,
      avg(CASE WHEN c.domain = 'memcg' THEN c.wb_setpoint_bytes END)
        AS memcg_wb_setpoint_bytes,
      avg(c.wb_dirty_bytes) AS wb_dirty_bytes,
      avg(c.task_ratelimit_bytes_per_s) AS task_ratelimit_bytes_per_s,
      min(c.task_ratelimit_bytes_per_s) AS task_ratelimit_least_bytes_per_s,
      max(c.task_ratelimit_bytes_per_s) AS task_ratelimit_most_bytes_per_s,
      avg(c.dirty_ratelimit_bytes_per_s) AS dirty_ratelimit_bytes_per_s,
      avg(c.write_bw_bytes_per_s) AS write_bw_bytes_per_s,
      avg(c.avg_write_bw_bytes_per_s) AS avg_write_bw_bytes_per_s
    FROM cell AS c
    GROUP BY c.window_index, c.bdi, c.cgroup_ino
  )
SELECT
  w.window_start_ns, m.bdi, m.cgroup_ino, m.steps_count, m.dirty_bytes,
  2 * m.setpoint_bytes - m.limit_bytes AS freerun_bytes,
  m.setpoint_bytes, m.limit_bytes, m.memcg_dirty_bytes, m.memcg_setpoint_bytes,
  m.memcg_limit_bytes, m.wb_dirty_bytes, m.wb_setpoint_bytes,
  m.memcg_wb_setpoint_bytes, m.task_ratelimit_bytes_per_s,
  m.task_ratelimit_least_bytes_per_s, m.task_ratelimit_most_bytes_per_s,
  m.dirty_ratelimit_bytes_per_s, m.write_bw_bytes_per_s,
  m.avg_write_bw_bytes_per_s,
  w.lost_gaps_count
FROM mean AS m
JOIN wb_window AS w ON w.window_index = m.window_index
ORDER BY w.window_start_ns, m.bdi, m.cgroup_ino;
