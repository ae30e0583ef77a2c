-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    ratelimit_error
-- @title    Rate that tasks were told, and rate that they kept
-- @order    22
-- @summary  Each task's task_ratelimit against the rate at which it dirtied.
-- @read     error_ratio is 0 % when the pauses made the task dirty pages at
--   just the rate that the kernel wanted; above 0 it went faster (in free run
--   no pause holds it), below 0 slower (it waited elsewhere, or wanted less).
--   target is a mean over time: short times of little dirty memory, with rates
--   far above the disk's, make most of it. The rate that was usual is p50; p25
--   is 0 where the task was stopped for a quarter of the time.
--   stopped, told and elsewhere say what the time was, and what of the error
--   came from it. stopped: the rate was 0. told: pauses held the task to a
--   rate. elsewhere: it was so late that no pause was due (think > period), for
--   something else held it up, or it wanted less. The error of told is that of
--   the control; the four parts add up to error_ratio.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    task under a name, bdi, cgroup; order bdi, cgroup_ino, tid
-- @first    error_ratio, target_bytes_per_s, actual_bytes_per_s
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time; as in throttle_by_task
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER events that told the task a rate
-- @column   active_ns INTEGER time from its first to its last event
-- @column   target_bytes_per_s REAL mean of task_ratelimit, weighted by the
--   time to the task's next event
-- @column   actual_bytes_per_s REAL the rate at which it dirtied, by
--   dirtied_basis: rate_bytes_per_s of fairness_tasks
-- @column   error_ratio REAL (actual - target) / target; NULL at target 0, and
--   of a task that was told rates of several wbs
-- @column   target_p25_bytes_per_s INTEGER the rate was no higher for a quarter
--   of the time; weighted as target, nearest rank
-- @column   target_p50_bytes_per_s INTEGER for half of the time
-- @column   target_p95_bytes_per_s INTEGER for 95 % of the time
-- @column   stopped_ratio REAL share of that time with task_ratelimit 0
-- @column   told_ratio REAL share of that time at a rate, until an event at
--   which a pause was due, or just none
-- @column   elsewhere_ratio REAL share of that time at a rate, until an event
--   at which the task was late (pause below 0)
-- @column   stopped_error_ratio REAL part of error_ratio: what events charged
--   after the rate 0, over target
-- @column   told_error_ratio REAL part of error_ratio: what was charged after
--   told time less what that was told, over target
-- @column   elsewhere_error_ratio REAL part of error_ratio: the same of the
--   time elsewhere
-- @column   freerun_error_ratio REAL the rest of error_ratio: what no event
--   charges, as it was dirtied in free run; 0 where dirtied_basis is bound
-- @column   dirtied_basis TEXT as basis of wb_task_dirtied
-- @metric   error_ratio neutral: how far a writer was from the speed that the
--   kernel chose for it; the nearer to 0 %, the better the control works
-- @metric   told_error_ratio neutral: how far a writer was from the speed that
--   the kernel chose for it while the kernel's pauses held it to that; the
--   nearer to 0 %, the better the control works
-- @metric   target_p50_bytes_per_s neutral: the speed that the kernel allowed a
--   writer for half of the time; the rest of the time it allowed more
-- @metric   stopped_ratio lower: share of the time in which the writer was not
--   allowed to produce any data, as more of it waited in memory than the kernel
--   allows
-- @metric   elsewhere_ratio lower: share of the time in which the writer did
--   not come near the speed that the kernel allowed: something else held it up,
--   or it wanted less
-- @source   mm/page-writeback.c balance_dirty_pages()
-- @cost     170
WITH
  placed AS (
    SELECT
      t.*,
      sum(t.told_ns) OVER (rates ROWS UNBOUNDED PRECEDING) AS so_far_ns,
      sum(t.told_ns) OVER (PARTITION BY t.task_id, t.bdi, t.cgroup_ino)
        AS all_ns
    FROM _told_rate AS t
    WINDOW rates AS (
      PARTITION BY t.task_id, t.bdi, t.cgroup_ino ORDER BY t.rate, t.is_late
    )
  ),
  -- Nearest rank: the smallest rate that was not exceeded for so long.
  summed AS (
    SELECT
      p.task_id, p.bdi, p.cgroup_ino,
      sum(p.events_count) AS events_count,
      nullif(sum(p.told_ns), 0) AS told_ns,
      sum(p.told_ns) / nullif(sum(sum(p.told_ns)) OVER (
        PARTITION BY p.task_id
      ), 0) AS wb_ratio,
      sum(p.rate * p.told_ns) AS rate_time,
      sum(CASE WHEN p.rate > 0 AND p.is_late = 0 THEN p.rate * p.told_ns
        ELSE 0 END) AS held_rate_time,
      sum(CASE WHEN p.rate > 0 AND p.is_late = 1 THEN p.rate * p.told_ns
        ELSE 0 END) AS late_rate_time,
      sum(CASE WHEN p.rate = 0 THEN p.told_ns ELSE 0 END) AS stopped_ns,
      sum(CASE WHEN p.rate > 0 AND p.is_late = 1 THEN p.told_ns ELSE 0 END)
        AS late_ns,
      min(CASE WHEN 100 * p.so_far_ns >= 25 * p.all_ns THEN p.rate END) AS p25,
      min(CASE WHEN 100 * p.so_far_ns >= 50 * p.all_ns THEN p.rate END) AS p50,
      min(CASE WHEN 100 * p.so_far_ns >= 95 * p.all_ns THEN p.rate END) AS p95
    FROM placed AS p
    GROUP BY p.task_id, p.bdi, p.cgroup_ino
  ),
  -- What was dirtied, by what the task was told before.
  dirtied AS (
    SELECT
      a.task_id, a.bdi, a.cgroup_ino,
      sum(CASE WHEN r.task_ratelimit = 0 THEN c.accounted_bytes ELSE 0 END)
        AS stopped_bytes,
      sum(CASE WHEN r.task_ratelimit > 0 AND c.pause_ns >= 0
        THEN c.accounted_bytes ELSE 0 END) AS held_bytes,
      sum(CASE WHEN r.task_ratelimit > 0 AND c.pause_ns < 0
        THEN c.accounted_bytes ELSE 0 END) AS late_bytes
    FROM wb_throttle AS c
    JOIN wb_throttle_total AS a
      ON same_writer!(a, c)
    CROSS JOIN raw_balance_dirty_pages AS n ON n.seq = c.seq
    CROSS JOIN raw_balance_dirty_pages AS r ON r.seq = n.prev_seq
    CROSS JOIN wb_params AS p
    WHERE c.is_step = 1
      AND c.accounted_bytes > 0
      AND c.seq > a.first_seq
      AND in_range!(c.ts, p)
    GROUP BY a.task_id, a.bdi, a.cgroup_ino
  ),
  compared AS (
    SELECT
      r.tid, r.comm, r.task_id, r.bdi, r.cgroup_ino, d.events_count,
      r.active_ns,
      d.rate_time * u.kib_bytes / d.told_ns AS target,
      -- Of several wbs, the rate of one is told for a part of the time only.
      CASE WHEN d.wb_ratio >= v.nearly_all_ratio THEN
        nullif(d.rate_time * u.kib_bytes / d.told_ns, 0)
      END AS judged_target,
      r.rate_bytes_per_s AS actual,
      r.dirtied_basis,
      d.p25 * u.kib_bytes AS p25,
      d.p50 * u.kib_bytes AS p50,
      d.p95 * u.kib_bytes AS p95,
      d.stopped_ns / d.told_ns AS stopped_ratio,
      d.late_ns / d.told_ns AS late_ratio,
      d.held_rate_time / nullif(d.rate_time, 0) AS held_share,
      d.late_rate_time / nullif(d.rate_time, 0) AS late_share,
      -- Bytes of what was dirtied in the three kinds of time, as rates.
      1.0 * u.second_ns * coalesce(s.stopped_bytes, 0) / r.active_ns
        AS stopped_rate,
      1.0 * u.second_ns * coalesce(s.held_bytes, 0) / r.active_ns AS held_rate,
      1.0 * u.second_ns * coalesce(s.late_bytes, 0) / r.active_ns AS late_rate
    FROM summed AS d
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
    JOIN wb_task_rate AS r
      ON same_writer!(r, d)
    LEFT JOIN dirtied AS s
      ON same_writer!(s, d)
    WHERE of_wb!(r, p)
      AND (p.tid IS NULL OR r.tid = p.tid)
  ),
  judged AS (
    SELECT
      c.*,
      (c.actual - c.target) / c.judged_target AS error_ratio,
      c.stopped_rate / c.judged_target AS stopped_error_ratio,
      c.held_rate / c.judged_target - c.held_share AS told_error_ratio,
      c.late_rate / c.judged_target - c.late_share AS elsewhere_error_ratio
    FROM compared AS c
  )
SELECT
  c.tid, c.comm, c.bdi, c.cgroup_ino, c.events_count, c.active_ns,
  c.target AS target_bytes_per_s,
  c.actual AS actual_bytes_per_s,
  c.error_ratio,
  c.p25 AS target_p25_bytes_per_s,
  c.p50 AS target_p50_bytes_per_s,
  c.p95 AS target_p95_bytes_per_s,
  c.stopped_ratio,
  1 - c.stopped_ratio - c.late_ratio AS told_ratio,
  c.late_ratio AS elsewhere_ratio,
  c.stopped_error_ratio, c.told_error_ratio, c.elsewhere_error_ratio,
  c.error_ratio - c.stopped_error_ratio - c.told_error_ratio
    - c.elsewhere_error_ratio AS freerun_error_ratio,
  c.dirtied_basis
FROM judged AS c
CROSS JOIN wb_params AS p
WHERE p.comm_glob IS NULL OR c.comm GLOB p.comm_glob
ORDER BY c.bdi, c.cgroup_ino, c.tid, c.task_id;

-- @view     _told_rate
-- @summary  How long each throttled task was told which rate. What an event
--   told holds until the task's next one, which says whether the task was late.
-- @grain    task under a name, bdi, cgroup, is_late, rate; order task_id, bdi,
--   cgroup_ino, rate, is_late
-- @column   is_late INTEGER 1: the pause of the next event was below 0, so no
--   pause was due
-- @column   rate INTEGER KiB/s, task_ratelimit
-- @column   told_ns REAL how long
-- @column   events_count INTEGER events that told it
-- @materialize
-- @cost     730
CREATE VIEW _told_rate AS
WITH
  bounds AS (
    SELECT min(a.first_seq) AS start_seq, max(a.last_seq) + 1 AS end_seq
    FROM wb_throttle_total AS a
  ),
  shared AS (
    SELECT a.task_id, count(*) AS wbs_count
    FROM wb_throttle_total AS a
    GROUP BY a.task_id
  ),
  single AS MATERIALIZED (
    -- Most tasks dirty pages of one wb, and have one name. A pid has 22 bits.
    SELECT t.tid, t.task_id
    FROM wb_task AS t
    JOIN shared AS s ON s.task_id = t.task_id AND s.wbs_count = 1
    WHERE t.tid BETWEEN 0 AND 4194303
      AND (SELECT count(*) FROM wb_task AS o WHERE o.tid = t.tid) = 1
  ),
  -- Grouped by one number, for SQLite sorts whole numbers fastest: the thread,
  -- whether it was late, and the rate in 40 bits (a petabyte/s and more). With
  -- LIMIT -1, which is none, it sorts no more than these two. min() and max()
  -- take longer than a look, and rates are as they should be.
  told AS (
    SELECT
      (n.tid * 2 + coalesce(n.pause < 0, 0)) * (1 << 40)
        + CASE WHEN r.task_ratelimit BETWEEN 0 AND 1099511627775
          THEN r.task_ratelimit
          ELSE min(max(r.task_ratelimit, 0), 1099511627775)
        END AS told,
      n.ts - r.ts AS told_ns
    FROM bounds AS b
    CROSS JOIN raw_balance_dirty_pages AS n
      ON n.seq > b.start_seq AND n.seq < b.end_seq
    CROSS JOIN raw_balance_dirty_pages AS r ON r.seq = n.prev_seq
    WHERE +n.prev_seq >= b.start_seq
      AND +n.tid IN (SELECT s.tid FROM single AS s)
    LIMIT -1
  ),
  alone AS (
    SELECT t.told, total(t.told_ns) AS told_ns, count(*) AS events_count
    FROM told AS t
    GROUP BY t.told
  ),
  several AS (
    SELECT
      (t.task_id * 2 + coalesce(n.pause < 0, 0)) * (1 << 40)
        + min(max(r.task_ratelimit, 0), 1099511627775) AS told,
      r.bdi,
      coalesce(r.cgroup_ino, g.cgroup_ino) AS cgroup_ino,
      total(n.ts - r.ts) AS told_ns,
      count(*) AS events_count
    FROM wb_task AS t
    CROSS JOIN raw_balance_dirty_pages AS n ON n.tid = t.tid
    CROSS JOIN raw_balance_dirty_pages AS r ON r.seq = n.prev_seq
    LEFT JOIN wb_cgroup AS g ON g.path = r.cgroup_path
    WHERE n.prev_seq >= (SELECT b.start_seq FROM bounds AS b)
      AND +n.seq < (SELECT b.end_seq FROM bounds AS b)
      -- Not from or to an event of another task with the same tid.
      AND n.prev_seq >= t.from_seq
      AND +n.seq < t.until_seq
      AND t.task_id NOT IN (SELECT s.task_id FROM single AS s)
    GROUP BY 1, 2, 3
  )
SELECT
  s.task_id, a.bdi, a.cgroup_ino,
  o.told / (1 << 40) % 2 AS is_late,
  o.told % (1 << 40) AS rate,
  o.told_ns, o.events_count
FROM alone AS o
JOIN single AS s ON s.tid = o.told / (1 << 41)
JOIN wb_throttle_total AS a ON a.task_id = s.task_id
UNION ALL
SELECT
  o.told / (1 << 41),
  o.bdi, o.cgroup_ino,
  o.told / (1 << 40) % 2,
  o.told % (1 << 40),
  o.told_ns, o.events_count
FROM several AS o;
