-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    throttle_by_task
-- @title    Who was throttled
-- @order    10
-- @summary  Which tasks balance_dirty_pages() throttled, how often and how
--   long.
-- @read     slept_total is the time a task was throttled, throttled_ratio its
--   share of the task's life in the trace; pauses are what the kernel intended,
--   and slept_basis says how good slept_total is (measured > probe > sched >
--   paused > intended). dirtied is a lower bound: it misses what was dirtied in
--   free run (but a short-lived task can be charged pages that an exited one
--   left behind); dirtied_estimate is what it dirtied, by the source that
--   dirtied_basis names. call_max is one call of balance_dirty_pages(), not one
--   write().
-- @filters  range, bdi, tid, task, cgroup
-- @grain    task under a name, bdi, cgroup; order slept_total_ns descending
-- @first    throttled_ratio, slept_total_ns, call_max_ns,
--   dirtied_estimate_bytes
-- @events   writeback:balance_dirty_pages
-- @optional writeback:balance_dirty_pages_done, writeback:global_dirty_state,
--   sched:sched_switch, syscalls:sys_exit_write,
--   wbscope:balance_dirty_pages_entry
-- @instead  completion_waits
-- @column   comm TEXT its name at that time: a task has a row for each name,
--   and tasks that had the same tid have rows of their own, where sched or
--   task events tell
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   calls_count INTEGER calls that fired at least one event
-- @column   pauses_count INTEGER events with a pause above 0
-- @column   pause_total_ns INTEGER sum of intended pauses
-- @column   pause_max_ns INTEGER longest intended pause
-- @column   pause_p50_ns INTEGER median of pauses above 0, nearest rank
-- @column   pause_p95_ns INTEGER nearest rank
-- @column   pause_p99_ns INTEGER nearest rank
-- @column   slept_total_ns INTEGER best measure of the time slept
-- @column   slept_basis TEXT weakest measure in that sum
-- @column   call_max_ns INTEGER longest call: time in it plus its last sleep
-- @column   fio_clat_max_ns INTEGER longest write() of its fio job, as fio saw
--   it; NULL = no fio.json, or not known which job it is
-- @column   dirtied_bytes INTEGER lower bound of what the task dirtied
-- @column   dirtied_estimate_bytes INTEGER what it dirtied, by dirtied_basis
-- @column   dirtied_basis TEXT as basis of wb_task_dirtied
-- @column   coverage_ratio REAL bytes charged by events to all tasks over bytes
--   that the machine dirtied; NULL = global_dirty_state does not tell
-- @column   written_bytes INTEGER by write system calls under this name, on
--   all bdis; NULL when they were not recorded
-- @column   throttled_ratio REAL slept_total over the task's life in the trace
-- @column   is_incidental INTEGER 1: it wrote on the side (wb_rule): it was
--   charged a few KiB or called once, and never paused, or nearly all of its
--   calls are for other bdis; text tables leave it out
-- @metric   throttled_ratio lower: share of the task's life in which the kernel
--   made it wait, because too much data waited in memory for disks
-- @metric   call_max_ns lower: the longest that one call of
--   balance_dirty_pages() held up the task; one write() can make several
-- @cost     210
WITH
  counted AS (
    SELECT a.task_id, a.bdi, a.cgroup_ino, a.events_count, a.last_ts
    FROM wb_throttle_total AS a
    CROSS JOIN wb_params AS p
    WHERE of_wb!(a, p)
      AND (p.tid IS NULL OR a.tid = p.tid)
  ),
  chosen AS (
    SELECT
      c.task_id, c.bdi,
      coalesce(c.cgroup_ino, 0) AS cgroup_key,
      c.is_first, c.pause_ns, c.sleep_ts, c.slept_ns, c.slept_basis, c.call_ns,
      c.accounted_bytes
    FROM wb_throttle AS c
    CROSS JOIN wb_bounds AS b
    WHERE c.is_step = 1 AND in_time!(c.ts, b)
  ),
  -- How often each pause was: they are whole ms, so there are few.
  pause_count AS (
    SELECT
      c.task_id, c.bdi, c.cgroup_key, c.pause_ns,
      count(*) AS pauses_count
    FROM chosen AS c
    WHERE c.pause_ns > 0
    GROUP BY c.task_id, c.bdi, c.cgroup_key, c.pause_ns
  ),
  ranked AS (
    SELECT
      p.task_id, p.bdi, p.cgroup_key, p.pause_ns,
      sum(p.pauses_count) OVER (
        PARTITION BY p.task_id, p.bdi, p.cgroup_key ORDER BY p.pause_ns
        ROWS UNBOUNDED PRECEDING
      ) AS places,
      sum(p.pauses_count) OVER (PARTITION BY p.task_id, p.bdi, p.cgroup_key)
        AS pauses_count
    FROM pause_count AS p
  ),
  -- Nearest rank: the smallest value that at least q percent do not exceed.
  quantile AS (
    SELECT
      r.task_id, r.bdi, r.cgroup_key,
      min(CASE WHEN 100 * r.places >= 50 * r.pauses_count THEN r.pause_ns END)
        AS pause_p50_ns,
      min(CASE WHEN 100 * r.places >= 95 * r.pauses_count THEN r.pause_ns END)
        AS pause_p95_ns,
      min(CASE WHEN 100 * r.places >= 99 * r.pauses_count THEN r.pause_ns END)
        AS pause_p99_ns
    FROM ranked AS r
    GROUP BY r.task_id, r.bdi, r.cgroup_key
  ),
  charge_sum AS (
    SELECT
      c.task_id, c.bdi, c.cgroup_key,
      sum(1 - c.is_first) AS more_events_count,
      sum(CASE WHEN c.pause_ns > 0 THEN 1 ELSE 0 END) AS pauses_count,
      sum(CASE WHEN c.pause_ns > 0 THEN c.pause_ns ELSE 0 END)
        AS pause_total_ns,
      max(CASE WHEN c.pause_ns > 0 THEN c.pause_ns ELSE 0 END)
        AS pause_max_ns,
      sum(c.slept_ns) AS slept_total_ns,
      CASE
        WHEN max(c.slept_basis = 'intended') = 1 THEN 'intended'
        WHEN max(c.slept_basis = 'paused') = 1 THEN 'paused'
        WHEN max(c.slept_basis = 'sched') = 1 THEN 'sched'
        WHEN max(c.slept_basis = 'probe') = 1 THEN 'probe'
        WHEN max(c.slept_basis = 'measured') = 1 THEN 'measured'
      END AS slept_basis,
      max(c.call_ns) AS call_max_ns,
      sum(c.accounted_bytes) AS dirtied_bytes,
      max(c.sleep_ts + c.slept_ns) AS end_ts
    FROM chosen AS c
    GROUP BY c.task_id, c.bdi, c.cgroup_key
  ),
  task_sum AS (
    SELECT
      a.task_id, a.bdi, a.cgroup_ino,
      a.events_count - coalesce(s.more_events_count, 0) AS calls_count,
      coalesce(s.pauses_count, 0) AS pauses_count,
      coalesce(s.pause_total_ns, 0) AS pause_total_ns,
      coalesce(s.pause_max_ns, 0) AS pause_max_ns,
      coalesce(s.slept_total_ns, 0) AS slept_total_ns,
      s.slept_basis,
      coalesce(s.call_max_ns, 0) AS call_max_ns,
      coalesce(s.dirtied_bytes, 0) AS dirtied_bytes,
      CASE WHEN s.end_ts > a.last_ts THEN s.end_ts ELSE a.last_ts END AS end_ts
    FROM counted AS a
    LEFT JOIN charge_sum AS s
      ON s.task_id = a.task_id
      AND s.bdi = a.bdi
      AND s.cgroup_key = coalesce(a.cgroup_ino, 0)
  ),
  life AS (
    SELECT
      s.*,
      t.tid, t.comm,
      CASE WHEN t.first_ts < b.start_ts THEN b.start_ts ELSE t.first_ts END
        AS life_start_ts,
      CASE
        WHEN t.last_ts > b.end_ts THEN b.end_ts
        WHEN t.last_ts < s.end_ts THEN s.end_ts
        ELSE t.last_ts
      END AS life_end_ts
    FROM task_sum AS s
    CROSS JOIN wb_bounds AS b
    JOIN wb_task AS t ON t.task_id = s.task_id
  )
SELECT
  l.tid, l.comm, l.bdi, l.cgroup_ino, l.calls_count, l.pauses_count,
  l.pause_total_ns, l.pause_max_ns, q.pause_p50_ns, q.pause_p95_ns,
  q.pause_p99_ns, l.slept_total_ns, l.slept_basis, l.call_max_ns,
  d.fio_clat_max_ns, l.dirtied_bytes,
  d.estimate_bytes AS dirtied_estimate_bytes,
  d.basis AS dirtied_basis,
  d.coverage_ratio,
  CASE WHEN EXISTS (SELECT 1 FROM wb_call AS c WHERE c.written_bytes > 0)
    THEN coalesce(w.bytes, 0)
  END AS written_bytes,
  CASE
    WHEN l.slept_total_ns >= l.life_end_ts - l.life_start_ts THEN
      CASE WHEN l.slept_total_ns > 0 THEN 1.0 ELSE 0.0 END
    ELSE 1.0 * l.slept_total_ns / (l.life_end_ts - l.life_start_ts)
  END AS throttled_ratio,
  coalesce(d.is_incidental, 0) AS is_incidental
FROM life AS l
CROSS JOIN wb_params AS p
LEFT JOIN quantile AS q
  ON q.task_id = l.task_id
  AND q.bdi = l.bdi
  AND q.cgroup_key = coalesce(l.cgroup_ino, 0)
LEFT JOIN written!(b) AS w ON w.task_id = l.task_id
LEFT JOIN wb_task_dirtied AS d
  ON same_writer!(d, l)
WHERE p.comm_glob IS NULL OR l.comm GLOB p.comm_glob
ORDER BY l.slept_total_ns DESC, l.tid, l.task_id, l.bdi, l.cgroup_ino;
