-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_task_rate
-- @summary  How fast each throttled task dirtied pages of each wb, and its
--   max-min fair share of what all of them together got.
-- @grain    bdi, cgroup, task; order bdi, cgroup_ino, tid
-- @needs    wb_throttle_total, wb_throttle_charge, wb_task, wb_units, wb_bounds
-- @events   writeback:balance_dirty_pages
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   dirtied_bytes INTEGER lower bound, first to last event
-- @column   active_ns INTEGER time from its first to its last event
-- @column   dirtied_bytes_per_s REAL its rate in that time
-- @column   slept_ratio REAL share of that time that it slept
-- @column   is_demand_limited INTEGER 1: it slept so little that it got all it
--   asked for; its own rate is then all that it is entitled to
-- @column   entitlement_bytes_per_s REAL its max-min fair share
-- @source   R. Jain et al., A Quantitative Measure of Fairness, DEC-TR-301;
--   D. Bertsekas and R. Gallager, Data Networks, 6.5.2 (max-min fairness)
-- @materialize
CREATE VIEW wb_task_rate AS
WITH
  charged AS (
    SELECT
      a.bdi,
      a.cgroup_ino,
      a.tid,
      a.first_ts,
      a.last_ts,
      -- The first event's pages were dirtied before it, so before the time
      -- that the rate is taken over.
      sum(CASE WHEN c.seq > a.first_seq THEN c.accounted_bytes ELSE 0 END)
        AS dirtied_bytes,
      sum(c.slept_ns) AS slept_ns,
      max(c.sleep_ts + c.slept_ns) AS slept_until_ts
    FROM wb_throttle_charge AS c
    CROSS JOIN wb_bounds AS b
    JOIN wb_throttle_total AS a
      ON a.tid = c.tid
      AND a.bdi = c.bdi
      AND coalesce(a.cgroup_ino, 0) = coalesce(c.cgroup_ino, 0)
    WHERE c.ts >= b.start_ts AND c.ts < b.end_ts
    GROUP BY a.bdi, a.cgroup_ino, a.tid, a.first_ts, a.last_ts
  ),
  task_rate AS (
    SELECT
      c.bdi,
      c.cgroup_ino,
      c.tid,
      coalesce(k.comm, 'tid ' || c.tid) AS comm,
      c.last_ts - c.first_ts AS active_ns,
      c.dirtied_bytes,
      1.0 * c.slept_ns / nullif(
        CASE WHEN c.slept_until_ts > c.last_ts THEN c.slept_until_ts
          ELSE c.last_ts
        END - c.first_ts,
        0
      ) AS slept_ratio
    FROM charged AS c
    LEFT JOIN wb_task AS k ON k.tid = c.tid
  ),
  demand AS (
    SELECT
      r.bdi,
      r.cgroup_ino,
      r.tid,
      r.comm,
      r.dirtied_bytes,
      r.active_ns,
      1.0 * u.second_ns * r.dirtied_bytes / r.active_ns AS rate,
      r.slept_ratio,
      CASE WHEN r.slept_ratio < 0.05 THEN 1 ELSE 0 END AS is_demand_limited
    FROM task_rate AS r
    CROSS JOIN wb_units AS u
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
        ORDER BY d.is_demand_limited DESC, d.rate, d.tid
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
  o.dirtied_bytes,
  o.active_ns,
  o.rate AS dirtied_bytes_per_s,
  o.slept_ratio,
  o.is_demand_limited,
  CASE WHEN o.place < l.stop_place OR l.stop_place IS NULL THEN o.rate
    ELSE l.fair_rate
  END AS entitlement_bytes_per_s
FROM ordered AS o
LEFT JOIN level AS l
  ON l.bdi = o.bdi
  AND coalesce(l.cgroup_ino, 0) = coalesce(o.cgroup_ino, 0);
