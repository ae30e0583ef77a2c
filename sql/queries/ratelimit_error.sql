-- SPDX-License-Identifier: Apache-2.0
-- @query    ratelimit_error
-- @title    Rate that tasks were told, and rate that they kept
-- @order    22
-- @summary  Each task's task_ratelimit against the rate at which it dirtied.
-- @read     error_ratio is 0 % when the pauses made the task dirty pages at
--   just the rate that the kernel wanted; above 0 it went faster (in free run
--   no pause holds it), below 0 slower (it waited elsewhere, or wanted less).
--   actual is a lower bound, as dirtied_bytes of throttle_by_task is.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    task under a name, bdi, cgroup; order bdi, cgroup_ino, tid
-- @needs    raw_balance_dirty_pages, wb_throttle_bounds, wb_throttle_total,
--   wb_task_rate, wb_task, wb_cgroup, wb_params, wb_units
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
  shared AS (
    SELECT a.task_id, count(*) AS wbs_count
    FROM wb_throttle_total AS a
    GROUP BY a.task_id
  ),
  -- What an event told holds until the task's next one.
  alone AS (
    -- Most tasks dirty pages of one wb. Rows come in the order of wb_task and
    -- of an index that ingest made, so nothing is sorted.
    SELECT
      t.task_id,
      count(*) AS events_count,
      total(r.task_ratelimit * (n.ts - r.ts)) AS rate_time,
      total(n.ts - r.ts) AS told_ns,
      total(CASE WHEN r.task_ratelimit = 0 THEN n.ts - r.ts END) AS stopped_ns
    FROM wb_task AS t
    CROSS JOIN raw_balance_dirty_pages AS n ON n.tid = t.tid
    CROSS JOIN raw_balance_dirty_pages AS r ON r.seq = n.prev_seq
    WHERE n.prev_seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND +n.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
      -- Not from or to an event of another task with the same tid.
      AND n.prev_seq >= t.from_seq
      AND +n.seq < t.until_seq
      AND t.task_id IN (SELECT s.task_id FROM shared AS s WHERE s.wbs_count = 1)
    GROUP BY t.task_id
  ),
  summed AS (
    SELECT
      o.task_id,
      a.bdi,
      a.cgroup_ino,
      o.events_count,
      o.rate_time,
      o.told_ns,
      o.stopped_ns
    FROM alone AS o
    JOIN wb_throttle_total AS a ON a.task_id = o.task_id
    UNION ALL
    SELECT
      t.task_id,
      r.bdi,
      coalesce(r.cgroup_ino, g.cgroup_ino),
      count(*),
      total(r.task_ratelimit * (n.ts - r.ts)),
      total(n.ts - r.ts),
      total(CASE WHEN r.task_ratelimit = 0 THEN n.ts - r.ts END)
    FROM wb_task AS t
    CROSS JOIN raw_balance_dirty_pages AS n ON n.tid = t.tid
    CROSS JOIN raw_balance_dirty_pages AS r ON r.seq = n.prev_seq
    LEFT JOIN wb_cgroup AS g ON g.path = r.cgroup_path
    WHERE n.prev_seq >= (SELECT b.start_seq FROM wb_throttle_bounds AS b)
      AND +n.seq < (SELECT b.end_seq FROM wb_throttle_bounds AS b)
      AND n.prev_seq >= t.from_seq
      AND +n.seq < t.until_seq
      AND t.task_id IN (SELECT s.task_id FROM shared AS s WHERE s.wbs_count > 1)
    GROUP BY 1, 2, 3
  ),
  told AS (
    SELECT
      s.task_id,
      s.bdi,
      s.cgroup_ino,
      sum(s.events_count) AS events_count,
      sum(s.rate_time) * u.kib_bytes AS rate_time,
      sum(s.told_ns) AS told_ns,
      sum(s.stopped_ns) AS stopped_ns
    FROM summed AS s
    CROSS JOIN wb_units AS u
    GROUP BY s.task_id, s.bdi, s.cgroup_ino, u.kib_bytes
  ),
  compared AS (
    SELECT
      r.tid,
      r.comm,
      r.task_id,
      r.bdi,
      r.cgroup_ino,
      d.events_count,
      r.active_ns,
      d.rate_time / nullif(d.told_ns, 0) AS target,
      r.dirtied_bytes_per_s AS actual,
      d.stopped_ns / nullif(d.told_ns, 0) AS stopped_ratio
    FROM told AS d
    CROSS JOIN wb_params AS p
    JOIN wb_task_rate AS r
      ON r.task_id = d.task_id
      AND r.bdi = d.bdi
      AND coalesce(r.cgroup_ino, 0) = coalesce(d.cgroup_ino, 0)
    WHERE (p.bdi IS NULL OR r.bdi = p.bdi)
      AND (p.tid IS NULL OR r.tid = p.tid)
      AND (p.cgroup_ino IS NULL OR r.cgroup_ino = p.cgroup_ino)
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
CROSS JOIN wb_params AS p
WHERE p.comm_glob IS NULL OR c.comm GLOB p.comm_glob
ORDER BY c.bdi, c.cgroup_ino, c.tid, c.task_id;
