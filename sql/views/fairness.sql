-- SPDX-License-Identifier: Apache-2.0
-- How fast each throttled task dirtied, and what share it was entitled to.

-- @view     wb_task_rate
-- @summary  How fast each throttled task dirtied pages of each wb, and its
--   max-min fair share of what all of them together got.
-- @grain    bdi, cgroup, task under a name; order bdi, cgroup_ino, tid
-- @needs    wb_throttle_total, wb_throttle, wb_task, _idle, wb_bounds,
--   wb_units, wb_rule, raw_sched_switch
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   dirtied_bytes INTEGER lower bound, first to last event
-- @column   active_ns INTEGER time from its first to its last event
-- @column   dirtied_bytes_per_s REAL its rate in that time
-- @column   slept_ratio REAL share of that time that it slept
-- @column   idle_ratio REAL share of the time in which it was not throttled
--   that it slept of its own accord (state S: a timer, a pipe, a lock of the
--   program); NULL = sched_switch did not watch it
-- @column   is_demand_limited INTEGER 1: it got all it asked for, as it was
--   throttled for hardly any of its time, or was idle for half of the rest or
--   more (wb_rule); its own rate is then all that it is entitled to
-- @column   entitlement_bytes_per_s REAL its max-min fair share
-- @source   R. Jain et al., A Quantitative Measure of Fairness, DEC-TR-301;
--   D. Bertsekas and R. Gallager, Data Networks, 6.5.2 (max-min fairness)
-- @materialize
CREATE VIEW wb_task_rate AS
WITH
  watched AS (
    SELECT DISTINCT s.prev_pid AS tid
    FROM raw_sched_switch AS s
  ),
  charged AS (
    SELECT
      a.bdi,
      a.cgroup_ino,
      a.task_id,
      a.first_ts,
      a.last_ts,
      -- The first event's pages were dirtied before it, so before the time
      -- that the rate is taken over.
      sum(CASE WHEN c.seq > a.first_seq THEN c.accounted_bytes ELSE 0 END)
        AS dirtied_bytes,
      sum(c.slept_ns) AS slept_ns,
      max(c.sleep_ts + c.slept_ns) AS slept_until_ts
    FROM wb_throttle AS c
    CROSS JOIN wb_bounds AS b
    JOIN wb_throttle_total AS a
      ON a.task_id = c.task_id
      AND a.bdi = c.bdi
      AND coalesce(a.cgroup_ino, 0) = coalesce(c.cgroup_ino, 0)
    WHERE c.is_step = 1 AND c.ts >= b.start_ts AND c.ts < b.end_ts
    GROUP BY a.bdi, a.cgroup_ino, a.task_id, a.first_ts, a.last_ts
  ),
  active AS (
    SELECT
      c.bdi,
      c.cgroup_ino,
      k.tid,
      k.comm,
      c.task_id,
      c.first_ts AS from_ts,
      max(c.slept_until_ts, c.last_ts) AS to_ts,
      c.last_ts - c.first_ts AS active_ns,
      c.dirtied_bytes,
      c.slept_ns
    FROM charged AS c
    JOIN wb_task AS k ON k.task_id = c.task_id
  ),
  task_rate AS (
    SELECT
      a.*,
      1.0 * a.slept_ns / nullif(a.to_ts - a.from_ts, 0) AS slept_ratio
    FROM active AS a
  ),
  idle AS (
    SELECT
      r.bdi,
      r.cgroup_ino,
      r.task_id,
      1.0 * sum(
        min(i.end_ts, r.to_ts) - max(i.ts, r.from_ts)
      ) / nullif(max(r.to_ts - r.from_ts - r.slept_ns), 0) AS idle_ratio
    FROM task_rate AS r
    JOIN _idle AS i
      ON i.tid = r.tid AND i.end_ts > r.from_ts AND i.ts < r.to_ts
    GROUP BY r.bdi, r.cgroup_ino, r.task_id
  ),
  demand AS (
    SELECT
      r.bdi,
      r.cgroup_ino,
      r.tid,
      r.comm,
      r.task_id,
      r.dirtied_bytes,
      r.active_ns,
      1.0 * u.second_ns * r.dirtied_bytes / r.active_ns AS rate,
      r.slept_ratio,
      CASE
        WHEN i.idle_ratio IS NOT NULL THEN i.idle_ratio
        WHEN r.tid IN (SELECT w.tid FROM watched AS w) THEN 0.0
      END AS idle_ratio,
      CASE
        WHEN r.slept_ratio < v.throttled_least_ratio THEN 1
        WHEN i.idle_ratio >= v.idle_least_ratio THEN 1
        ELSE 0
      END AS is_demand_limited
    FROM task_rate AS r
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
    LEFT JOIN idle AS i
      ON i.bdi = r.bdi
      AND coalesce(i.cgroup_ino, 0) = coalesce(r.cgroup_ino, 0)
      AND i.task_id = r.task_id
    WHERE r.active_ns > 0 AND r.dirtied_bytes > 0
  ),
  -- Water-filling: tasks in order of what they ask for, those who ask for all
  -- they can get last. The level is what is left, divided among the rest.
  ordered AS (
    SELECT
      d.*,
      sum(d.rate) OVER wb AS capacity,
      count(*) OVER wb AS tasks_count,
      row_number() OVER asking AS place,
      sum(d.rate) OVER (asking ROWS UNBOUNDED PRECEDING) AS asked_so_far
    FROM demand AS d
    WINDOW
      wb AS (PARTITION BY d.bdi, d.cgroup_ino),
      asking AS (
        PARTITION BY d.bdi, d.cgroup_ino
        ORDER BY d.is_demand_limited DESC, d.rate, d.tid, d.task_id
      )
  ),
  levels AS (
    SELECT
      o.bdi,
      o.cgroup_ino,
      -- The first task that asks for more than the level stops the filling.
      min(
        CASE
          WHEN o.is_demand_limited = 0
            OR o.rate > (o.capacity - (o.asked_so_far - o.rate))
              / (o.tasks_count - o.place + 1)
            THEN o.place
        END
      ) AS stop_place
    FROM ordered AS o
    GROUP BY o.bdi, o.cgroup_ino
  ),
  level AS (
    SELECT
      l.bdi,
      l.cgroup_ino,
      l.stop_place,
      (o.capacity - (o.asked_so_far - o.rate)) / (o.tasks_count - o.place + 1)
        AS fair_rate
    FROM levels AS l
    JOIN ordered AS o
      ON o.bdi = l.bdi
      AND coalesce(o.cgroup_ino, 0) = coalesce(l.cgroup_ino, 0)
      AND o.place = l.stop_place
  )
SELECT
  o.bdi,
  o.cgroup_ino,
  o.tid,
  o.comm,
  o.task_id,
  o.dirtied_bytes,
  o.active_ns,
  o.rate AS dirtied_bytes_per_s,
  o.slept_ratio,
  o.idle_ratio,
  o.is_demand_limited,
  CASE WHEN o.place < l.stop_place OR l.stop_place IS NULL THEN o.rate
    ELSE l.fair_rate
  END AS entitlement_bytes_per_s
FROM ordered AS o
LEFT JOIN level AS l
  ON l.bdi = o.bdi
  AND coalesce(l.cgroup_ino, 0) = coalesce(o.cgroup_ino, 0);

-- @view     wb_window_rate
-- @summary  How fast each throttled task dirtied pages of each wb in each
--   window in which it was charged pages or slept; empty unless windows are
--   asked for (wb_params.by_window). A sleep is taken as starting at its event,
--   where the pages are charged.
-- @grain    window, bdi, cgroup, task under a name; order window_start_ns, bdi,
--   cgroup_ino, tid
-- @needs    wb_throttle, wb_task, wb_window, wb_bounds, wb_params, wb_units
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   window_start_ns INTEGER trace clock
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task
-- @column   dirtied_bytes_per_s REAL over the part of the window in the trace
CREATE VIEW wb_window_rate AS
WITH
  touched AS (
    SELECT
      w.window_index,
      t.bdi,
      t.cgroup_ino,
      t.task_id,
      CASE WHEN t.ts >= w.window_start_ns THEN t.accounted_bytes ELSE 0 END
        AS dirtied_bytes
    FROM wb_params AS p
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_throttle AS t
    CROSS JOIN wb_window AS w
    WHERE p.by_window = 1
      AND t.is_step = 1
      AND (t.accounted_bytes > 0 OR t.slept_ns > 0)
      AND t.ts < b.end_ts
      AND (t.ts >= b.start_ts OR t.ts + t.slept_ns > b.start_ts)
      AND w.window_index >= (t.ts - b.start_ts) / p.window_ns
      AND w.window_index <= (
        t.ts + CASE WHEN t.slept_ns > 0 THEN t.slept_ns - 1 ELSE 0 END
        - b.start_ts
      ) / p.window_ns
  ),
  cell AS (
    SELECT
      t.window_index,
      t.bdi,
      t.cgroup_ino,
      t.task_id,
      sum(t.dirtied_bytes) AS dirtied_bytes
    FROM touched AS t
    GROUP BY t.window_index, t.bdi, t.cgroup_ino, t.task_id
  ),
  -- The last window may be longer than what is left of the trace.
  covered AS (
    SELECT
      w.window_index,
      w.window_start_ns,
      min(w.window_end_ns, b.end_ts, b.last_ts + 1) - w.window_start_ns
        AS covered_ns
    FROM wb_window AS w
    CROSS JOIN wb_bounds AS b
  )
SELECT
  w.window_start_ns,
  c.bdi,
  c.cgroup_ino,
  k.tid,
  k.comm,
  c.task_id,
  1.0 * u.second_ns * c.dirtied_bytes / w.covered_ns AS dirtied_bytes_per_s
FROM cell AS c
CROSS JOIN wb_units AS u
JOIN covered AS w ON w.window_index = c.window_index
JOIN wb_task AS k ON k.task_id = c.task_id;

-- @view     wb_fairness_window
-- @summary  Jain's index of what throttled tasks dirtied in each window.
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @needs    wb_throttle, wb_bounds, wb_params, wb_window
-- @events   writeback:balance_dirty_pages
-- @column   window_start_ns INTEGER trace clock
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tasks_count INTEGER tasks that were charged pages in the window
-- @column   jain_ratio REAL 1 = equal shares, 1/n = one task has all
CREATE VIEW wb_fairness_window AS
WITH
  share AS (
    SELECT
      (t.ts - b.start_ts) / p.window_ns AS window_index,
      t.bdi,
      t.cgroup_ino,
      t.tid,
      t.task_id,
      1.0 * sum(t.accounted_bytes) AS bytes
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE t.is_step = 1
      AND t.ts >= b.start_ts
      AND t.ts < b.end_ts
      AND t.accounted_bytes > 0
    GROUP BY 1, t.bdi, t.cgroup_ino, t.tid, t.task_id
  ),
  per_window AS (
    SELECT
      s.window_index,
      s.bdi,
      s.cgroup_ino,
      count(*) AS tasks_count,
      sum(s.bytes) * sum(s.bytes)
        / nullif(count(*) * sum(s.bytes * s.bytes), 0) AS jain_ratio
    FROM share AS s
    GROUP BY s.window_index, s.bdi, s.cgroup_ino
  )
SELECT
  w.window_start_ns,
  f.bdi,
  f.cgroup_ino,
  f.tasks_count,
  f.jain_ratio
FROM per_window AS f
JOIN wb_window AS w ON w.window_index = f.window_index;

-- @view     _idle
-- @summary  Sleeps in which a throttled task did not want to run: interruptible
--   ones, such as those of a rate limit, of an empty pipe or of nothing to do.
-- @grain    sleep of a task that fires balance_dirty_pages; order tid, ts
-- @needs    raw_sched_switch, raw_balance_dirty_pages, wb_bounds
-- @optional sched:sched_switch
-- @column   tid INTEGER thread
-- @column   ts INTEGER ns, when it left the CPU
-- @column   end_ts INTEGER ns, when it ran again; the trace's end if it did not
-- @source   include/trace/events/sched.h: bit 0 of prev_state is
--   TASK_INTERRUPTIBLE in every kernel
-- @materialize
CREATE VIEW _idle AS
WITH
  dirtier AS (
    SELECT DISTINCT d.tid
    FROM raw_balance_dirty_pages AS d
    WHERE EXISTS (SELECT 1 FROM raw_sched_switch)
  ),
  moves AS (
    SELECT s.prev_pid AS tid, s.seq, s.ts, s.prev_state AS left_state
    FROM raw_sched_switch AS s
    WHERE s.prev_pid IN (SELECT d.tid FROM dirtier AS d)
    UNION ALL
    SELECT s.next_pid, s.seq, s.ts, NULL
    FROM raw_sched_switch AS s
    WHERE s.next_pid IN (SELECT d.tid FROM dirtier AS d)
  ),
  paired AS (
    SELECT
      m.tid,
      m.ts,
      m.left_state,
      lead(m.ts) OVER task AS next_ts,
      lead(m.left_state) OVER task AS next_left_state
    FROM moves AS m
    WINDOW task AS (PARTITION BY m.tid ORDER BY m.seq)
  )
SELECT p.tid, p.ts, coalesce(p.next_ts, b.last_ts) AS end_ts
FROM paired AS p
CROSS JOIN wb_bounds AS b
WHERE p.left_state & 1 = 1
  -- Two switches off the CPU in a row: the one onto it was not recorded.
  AND p.next_left_state IS NULL;
