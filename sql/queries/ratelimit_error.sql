-- SPDX-License-Identifier: Apache-2.0
-- @query    ratelimit_error
-- @title    Rate that tasks were told, and rate that they kept
-- @order    22
-- @summary  Each task's task_ratelimit against the rate at which it dirtied.
-- @read     error_ratio is 0 % when the pauses made the task dirty pages at
--   just the rate that the kernel wanted; above 0 it went faster (in free run
--   no pause holds it), below 0 slower (it waited elsewhere, or wanted less).
--   actual is a lower bound, as dirtied_bytes of throttle_by_task is.
-- @filters  range, bdi, tid, cgroup
-- @grain    task under a name, bdi, cgroup; order bdi, cgroup_ino, tid
-- @needs    wb_throttle, wb_task_rate, wb_task, wb_bounds, wb_params
-- @events   writeback:balance_dirty_pages
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time; as in throttle_by_task
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER events that told the task a rate
-- @column   active_ns INTEGER time from its first to its last event
-- @column   target_bytes_per_s REAL mean of task_ratelimit, weighted by the
--   time to the task's next event
-- @column   actual_bytes_per_s REAL what it dirtied in active_ns
-- @column   error_ratio REAL (actual - target) / target; NULL at target 0
-- @column   stopped_ratio REAL share of that time with task_ratelimit 0
-- @metric   error_ratio neutral: how far a writer was from the speed that the
--   kernel chose for it; the nearer to 0 %, the better the control works
-- @metric   stopped_ratio lower: share of the time in which the writer was not
--   allowed to produce any data, as more of it waited in memory than the kernel
--   allows
-- @source   mm/page-writeback.c balance_dirty_pages()
WITH
  told AS (
    SELECT
      t.tid,
      t.comm,
      t.task_id,
      t.bdi,
      t.cgroup_ino,
      count(*) AS events_count,
      sum(1.0 * t.task_ratelimit_bytes_per_s * (t.next_ts - t.ts))
        AS rate_time,
      1.0 * sum(t.next_ts - t.ts) AS told_ns,
      1.0 * sum(
        CASE
          WHEN t.task_ratelimit_bytes_per_s = 0 THEN t.next_ts - t.ts
          ELSE 0
        END
      ) AS stopped_ns
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    LEFT JOIN wb_task AS k ON k.task_id = t.task_id
    WHERE t.ts >= b.start_ts
      AND t.next_ts < b.end_ts
      -- Not up to an event of another task with the same tid.
      AND (k.until_ts IS NULL OR t.next_ts < k.until_ts)
      AND (p.bdi IS NULL OR t.bdi = p.bdi)
      AND (p.tid IS NULL OR t.tid = p.tid)
      AND (p.cgroup_ino IS NULL OR t.cgroup_ino = p.cgroup_ino)
    GROUP BY t.tid, t.comm, t.task_id, t.bdi, t.cgroup_ino
  ),
  compared AS (
    SELECT
      d.tid,
      d.comm,
      d.task_id,
      d.bdi,
      d.cgroup_ino,
      d.events_count,
      r.active_ns,
      d.rate_time / nullif(d.told_ns, 0) AS target,
      r.dirtied_bytes_per_s AS actual,
      d.stopped_ns / nullif(d.told_ns, 0) AS stopped_ratio
    FROM told AS d
    JOIN wb_task_rate AS r
      ON r.tid = d.tid
      AND r.task_id = d.task_id
      AND r.bdi = d.bdi
      AND coalesce(r.cgroup_ino, 0) = coalesce(d.cgroup_ino, 0)
  )
SELECT
  c.tid,
  c.comm,
  c.bdi,
  c.cgroup_ino,
  c.events_count,
  c.active_ns,
  c.target AS target_bytes_per_s,
  c.actual AS actual_bytes_per_s,
  (c.actual - c.target) / nullif(c.target, 0) AS error_ratio,
  c.stopped_ratio
FROM compared AS c
ORDER BY c.bdi, c.cgroup_ino, c.tid, c.task_id;
