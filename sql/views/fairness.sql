-- SPDX-License-Identifier: Apache-2.0
-- How fast each throttled task dirtied, and what share it was entitled to.

-- @view     wb_task_rate
-- @summary  How fast each throttled task dirtied pages of each wb, and its
--   max-min fair share of what those got that wrote together. Tasks that wrote
--   on the side (wb_rule) are left out.
-- @grain    bdi, cgroup, task under a name; order bdi, cgroup_ino, tid
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tid INTEGER thread
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   dirtied_bytes INTEGER charged, first to last event: a lower bound
-- @column   active_ns INTEGER time from its first to its last event
-- @column   events_count INTEGER its events
-- @column   dirtied_bytes_per_s REAL the lower bound of its rate in that time
-- @column   dirtied_estimate_bytes INTEGER what it dirtied, by dirtied_basis
-- @column   dirtied_basis TEXT as basis of wb_task_dirtied
-- @column   coverage_ratio REAL of the machine, as in wb_task_dirtied
-- @column   rate_bytes_per_s REAL its rate, by dirtied_basis, from its first to
--   its last call
-- @column   slept_ratio REAL share of that time that it slept
-- @column   idle_ratio REAL share of the time in which it was not throttled
--   that it slept of its own accord (state S: a timer, a pipe, a lock of the
--   program) or was stopped (T, t); NULL = sched_switch did not watch it
-- @column   is_compared INTEGER 1: it is of those, the most of its wb, that
--   were active at the same moment and for wb_rule.together_least_ns from then,
--   or it is the only one
-- @column   is_demand_limited INTEGER 1: it asked for less than it could get:
--   the rate= of its fio job, or, where it has none, it was idle for half of
--   its own time or more, or throttled for hardly any of it (wb_rule), or it
--   computes so long that with a CPU to itself, and never throttled, it would
--   not come to its share
-- @column   asked_bytes_per_s REAL what it asked for: its rate, or, where it
--   computes, its rate with a CPU to itself; NULL = all it could get, or not
--   known
-- @column   demand_basis TEXT of its wb: fio: rate= of each job; sched:
--   sched_switch watched each task; none: nothing tells
-- @column   entitlement_bytes_per_s REAL its max-min fair share of what those
--   got that are compared; NULL = it is not, or nothing tells what the tasks of
--   its wb asked for
-- @source   R. Jain et al., A Quantitative Measure of Fairness, DEC-TR-301;
--   D. Bertsekas and R. Gallager, Data Networks, 6.5.2 (max-min fairness)
-- @materialize
CREATE VIEW wb_task_rate AS
WITH
  demand AS (
    SELECT
      j.*,
      CASE
        WHEN j.demand_basis = 'fio' THEN j.asked_bytes_per_s
        -- No more than this: whether it is its share, or less, is seen below.
        WHEN j.is_demand_limited = 0 THEN max(j.cpu_rate, j.rate)
        ELSE j.rate
      END AS asked
    FROM _task_demand AS j
  ),
  -- Of tasks one after the other, rates are of different times, and add up to
  -- nothing.
  step AS (
    SELECT d.bdi, d.cgroup_ino, d.from_ts AS ts, 1 AS change
    FROM demand AS d
    CROSS JOIN wb_rule AS v
    WHERE d.active_ns >= v.together_least_ns
    UNION ALL
    SELECT
      d.bdi, d.cgroup_ino, d.from_ts + d.active_ns - v.together_least_ns, -1
    FROM demand AS d
    CROSS JOIN wb_rule AS v
    WHERE d.active_ns >= v.together_least_ns
  ),
  active AS (
    SELECT
      s.*,
      sum(s.change) OVER (
        PARTITION BY s.bdi, s.cgroup_ino
        ORDER BY s.ts, s.change DESC
        ROWS UNBOUNDED PRECEDING
      ) AS tasks_count
    FROM step AS s
  ),
  moment AS (
    SELECT
      a.*,
      row_number() OVER (
        PARTITION BY a.bdi, a.cgroup_ino
        ORDER BY a.tasks_count DESC, a.ts
      ) AS place
    FROM active AS a
  ),
  grouped AS (
    SELECT
      d.*,
      CASE
        WHEN count(*) OVER (PARTITION BY d.bdi, d.cgroup_ino) = 1 THEN 1
        WHEN m.tasks_count > 1
          AND d.from_ts <= m.ts
          AND d.from_ts + d.active_ns - v.together_least_ns >= m.ts
          THEN 1
        ELSE 0
      END AS is_compared
    FROM demand AS d
    CROSS JOIN wb_rule AS v
    LEFT JOIN moment AS m
      ON m.bdi = d.bdi
      AND coalesce(m.cgroup_ino, 0) = coalesce(d.cgroup_ino, 0)
      AND m.place = 1
  ),
  -- Water-filling: tasks in order of what they ask for, those who ask for all
  -- they can get last. The level is what is left, divided among the rest.
  ordered AS (
    SELECT
      d.*,
      sum(d.rate) OVER wb AS capacity,
      count(*) OVER wb AS tasks_count,
      row_number() OVER asking AS place,
      sum(coalesce(d.asked, 0)) OVER (asking ROWS UNBOUNDED PRECEDING)
        AS asked_so_far
    FROM grouped AS d
    WINDOW
      wb AS (PARTITION BY d.bdi, d.cgroup_ino, d.is_compared),
      asking AS (
        PARTITION BY d.bdi, d.cgroup_ino, d.is_compared
        ORDER BY d.asked IS NULL, d.asked, d.tid, d.task_id
      )
  ),
  levels AS (
    SELECT
      o.bdi, o.cgroup_ino,
      -- The first task that asks for more than the level stops the filling.
      min(
        CASE
          WHEN o.asked IS NULL
            OR o.asked > (o.capacity - (o.asked_so_far - o.asked))
              / (o.tasks_count - o.place + 1)
            THEN o.place
        END
      ) AS stop_place
    FROM ordered AS o
    WHERE o.is_compared = 1
    GROUP BY o.bdi, o.cgroup_ino
  ),
  level AS (
    SELECT
      l.bdi, l.cgroup_ino, l.stop_place,
      (o.capacity - (o.asked_so_far - coalesce(o.asked, 0)))
        / (o.tasks_count - o.place + 1) AS fair_rate
    FROM levels AS l
    JOIN ordered AS o
      ON o.bdi = l.bdi
      AND coalesce(o.cgroup_ino, 0) = coalesce(l.cgroup_ino, 0)
      AND o.place = l.stop_place
      AND o.is_compared = 1
  )
SELECT
  o.bdi, o.cgroup_ino, o.tid, o.comm, o.task_id, o.dirtied_bytes, o.active_ns,
  o.events_count,
  1.0 * u.second_ns * o.dirtied_bytes / o.active_ns AS dirtied_bytes_per_s,
  o.estimate_bytes AS dirtied_estimate_bytes,
  o.basis AS dirtied_basis,
  o.coverage_ratio,
  o.rate AS rate_bytes_per_s,
  o.slept_ratio, o.idle_ratio, o.is_compared,
  CASE WHEN o.demand_basis <> 'none' THEN o.is_limited END
    AS is_demand_limited,
  CASE WHEN o.demand_basis <> 'none' AND o.is_limited THEN o.asked END
    AS asked_bytes_per_s,
  o.demand_basis,
  CASE
    WHEN o.demand_basis = 'none' OR o.is_compared = 0 THEN NULL
    WHEN o.place < o.stop_place OR o.stop_place IS NULL THEN o.asked
    ELSE o.fair_rate
  END AS entitlement_bytes_per_s
FROM (
  SELECT
    d.*,
    l.stop_place, l.fair_rate,
    d.is_demand_limited = 1
      OR (
        d.is_compared = 1
        AND d.asked IS NOT NULL
        AND d.place < l.stop_place
      ) AS is_limited
  FROM ordered AS d
  LEFT JOIN level AS l
    ON l.bdi = d.bdi
    AND coalesce(l.cgroup_ino, 0) = coalesce(d.cgroup_ino, 0)
) AS o
CROSS JOIN wb_units AS u;

-- @view     wb_dirtied_part
-- @shared
-- @summary  When each throttled task dirtied what, by the basis of
--   wb_task_dirtied. What has no time of its own is shared out to the task's
--   calls in free run and stands at the end of their window; the parts add up
--   to the whole.
-- @grain    charge, or window with calls in free run; order task_id, ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, wbscope:balance_dirty_pages_entry,
--   writeback:writeback_dirty_folio
-- @column   window_index INTEGER of wb_window
-- @column   ts INTEGER ns, trace clock: it was dirtied before
-- @column   dirtied_bytes REAL what it dirtied
CREATE VIEW wb_dirtied_part AS
SELECT
  (p.ts - b.start_ts) / q.window_ns AS window_index,
  p.ts, d.task_id, d.tid, d.bdi, d.cgroup_ino,
  1.0 * p.dirtied_bytes * d.estimate_bytes / nullif(
    sum(p.dirtied_bytes) OVER (PARTITION BY d.task_id, d.bdi, d.cgroup_ino), 0
  ) AS dirtied_bytes
FROM wb_task_dirtied AS d
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS q
JOIN wb_task AS k ON k.task_id = d.task_id
JOIN wb_call AS p
  ON task_of!(k, p)
  AND p.call = 'balance_dirty_pages'
  AND p.device = d.bdi
  AND coalesce(p.cgroup_ino, 0) = coalesce(d.cgroup_ino, 0)
WHERE d.basis = 'probe' AND in_time!(p.ts, b)
UNION ALL
SELECT
  (f.ts - b.start_ts) / q.window_ns,
  max(f.ts), d.task_id, d.tid, d.bdi, d.cgroup_ino,
  1.0 * count(*) * d.estimate_bytes
    / sum(count(*)) OVER (PARTITION BY d.task_id, d.bdi, d.cgroup_ino)
FROM wb_task_dirtied AS d
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS q
JOIN wb_task AS k ON k.task_id = d.task_id
JOIN raw_writeback_dirty_folio AS f
  ON task_of!(k, f)
  AND f.name = d.bdi
WHERE d.basis = 'folio' AND in_time!(f.ts, b)
GROUP BY 1, d.task_id, d.tid, d.bdi, d.cgroup_ino, d.estimate_bytes
UNION ALL
SELECT
  (t.ts - b.start_ts) / q.window_ns,
  t.ts, d.task_id, d.tid, d.bdi, d.cgroup_ino, t.accounted_bytes
    * CASE
      WHEN d.basis = 'bound' THEN 1.0
      -- Charged for others, or no call in free run to share it out to.
      WHEN d.estimate_bytes < d.charged_bytes
        OR coalesce(d.free_calls_count, 0) = 0
        THEN 1.0 * d.estimate_bytes / d.charged_bytes
      ELSE 1.0
    END
FROM wb_throttle AS t
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS q
JOIN wb_task_dirtied AS d
  ON same_writer!(d, t)
  AND d.basis NOT IN ('folio', 'probe')
WHERE t.is_step = 1
  AND t.accounted_bytes > 0
  AND in_time!(t.ts, b)
UNION ALL
SELECT
  c.window_index,
  min(w.window_end_ns, b.end_ts, b.last_ts + 1) - 1,
  d.task_id, d.tid, d.bdi, d.cgroup_ino,
  c.share_ratio * (d.estimate_bytes - d.charged_bytes)
FROM _free_call AS c
CROSS JOIN wb_bounds AS b
JOIN wb_window AS w ON w.window_index = c.window_index
JOIN wb_task_dirtied AS d ON d.task_id = c.task_id
WHERE d.basis NOT IN ('folio', 'probe', 'bound')
  AND d.estimate_bytes > d.charged_bytes;

-- @view     _spent
-- @summary  When a throttled task ran, and sleeps in which it did not want to
--   run: interruptible ones, such as those of a rate limit, of an empty pipe or
--   of nothing to do, and those of a task that was stopped, by a signal or a
--   debugger.
-- @grain    stretch of a task that fires balance_dirty_pages; order tid, ts
-- @column   tid INTEGER thread
-- @column   ts INTEGER ns, when it left the CPU, or got it
-- @column   end_ts INTEGER ns, when it ran again, or left it; the trace's end
--   if it did not
-- @column   is_idle INTEGER 1: such a sleep; 0: it ran
-- @materialize
CREATE VIEW _spent AS
WITH
  dirtier AS (
    SELECT DISTINCT d.tid
    FROM raw_balance_dirty_pages AS d
    WHERE EXISTS (SELECT 1 FROM raw_sched_switch)
  ),
  moves AS (
    SELECT s.tid, s.seq, s.ts, s.is_on, s.left_state
    FROM switched!(k) AS s
    WHERE s.tid IN (SELECT d.tid FROM dirtier AS d)
  ),
  paired AS (
    SELECT
      m.tid, m.ts, m.left_state, m.is_on,
      lead(m.ts) OVER task AS next_ts,
      lead(m.is_on) OVER task AS next_is_on
    FROM moves AS m
    WINDOW task AS (PARTITION BY m.tid ORDER BY m.seq)
  )
SELECT
  p.tid, p.ts,
  coalesce(p.next_ts, b.last_ts) AS end_ts,
  1 - p.is_on AS is_idle
FROM paired AS p
CROSS JOIN wb_bounds AS b
WHERE (p.is_on = 1 OR p.left_state IN ('S', 'T'))
  -- Two switches of one kind in a row: the one between them was not recorded.
  AND coalesce(p.next_is_on <> p.is_on, 1);

-- @view     _task_demand
-- @summary  What each task dirtied, and whether it wanted more than it got.
-- @grain    task under a name, bdi, cgroup; order task_id, bdi, cgroup_ino
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   tid INTEGER thread
-- @column   comm TEXT its name
-- @column   task_id INTEGER of wb_task: the task under its name
-- @column   from_ts INTEGER ns, of its first event
-- @column   active_ns INTEGER from its first to its last event
-- @column   events_count INTEGER events
-- @column   dirtied_bytes INTEGER charged after its first event
-- @column   estimate_bytes INTEGER as in wb_task_dirtied
-- @column   basis TEXT as in wb_task_dirtied
-- @column   coverage_ratio REAL as in wb_task_dirtied
-- @column   asked_bytes_per_s REAL that fio was told to write
-- @column   slept_ratio REAL share of that time that it slept in throttling
-- @column   rate REAL bytes/s that it dirtied
-- @column   idle_ratio REAL share in which it waited for nothing to do; NULL =
--   no sched_switch
-- @column   cpu_rate REAL bytes/s that it dirtied while it had a CPU
-- @column   demand_basis TEXT fio, sched or none: what tells what it asked for
-- @column   is_demand_limited INTEGER 1: it got what it asked for
CREATE VIEW _task_demand AS
WITH
  watched AS (
    SELECT DISTINCT s.prev_pid AS tid
    FROM raw_sched_switch AS s
  ),
  dirtying AS (
    SELECT
      a.bdi, a.cgroup_ino, k.tid, k.comm, a.task_id,
      a.first_ts AS from_ts,
      max(d.slept_until_ts, a.last_ts) AS to_ts,
      a.last_ts - a.first_ts AS active_ns,
      a.events_count,
      -- The first event's pages were dirtied before it, so before the time
      -- that the rate is taken over.
      d.charged_bytes - d.first_charged_bytes AS dirtied_bytes,
      d.slept_ns, d.estimate_bytes, d.basis, d.coverage_ratio, d.is_fio,
      d.asked_bytes_per_s,
      CASE
        WHEN d.basis = 'bound' THEN d.charged_bytes - d.first_charged_bytes
        ELSE d.estimate_bytes - d.first_bytes
      END AS rate_bytes,
      CASE WHEN d.basis = 'bound' THEN a.first_ts ELSE d.from_ts END
        AS rate_from_ts,
      CASE WHEN d.basis = 'bound' THEN a.last_ts ELSE d.to_ts END AS rate_to_ts,
      d.fio_bytes_per_s
    FROM wb_throttle_total AS a
    JOIN wb_task AS k ON k.task_id = a.task_id
    JOIN wb_task_dirtied AS d
      ON same_writer!(d, a)
    WHERE d.is_incidental = 0 AND d.slept_ns IS NOT NULL
  ),
  task_rate AS (
    SELECT
      a.*,
      1.0 * a.slept_ns / nullif(a.to_ts - a.from_ts, 0) AS slept_ratio,
      coalesce(
        a.fio_bytes_per_s,
        1.0 * u.second_ns * a.rate_bytes
          / nullif(a.rate_to_ts - a.rate_from_ts, 0)
      ) AS rate
    FROM dirtying AS a
    CROSS JOIN wb_units AS u
    WHERE a.active_ns > 0 AND a.dirtied_bytes > 0
  ),
  spent AS (
    SELECT
      r.bdi, r.cgroup_ino, r.task_id,
      1.0 * total(
        CASE i.is_idle WHEN 1
          THEN max(min(i.end_ts, r.to_ts) - max(i.ts, r.from_ts), 0)
        END
      ) / nullif(max(r.to_ts - r.from_ts - r.slept_ns), 0) AS idle_ratio,
      -- Of the time that its rate is of.
      sum(
        CASE i.is_idle WHEN 0
          THEN max(min(i.end_ts, r.rate_to_ts) - max(i.ts, r.rate_from_ts), 0)
        END
      ) AS cpu_ns
    FROM task_rate AS r
    JOIN _spent AS i
      ON i.tid = r.tid
      AND i.end_ts > min(r.from_ts, r.rate_from_ts)
      AND i.ts < max(r.to_ts, r.rate_to_ts)
    GROUP BY r.bdi, r.cgroup_ino, r.task_id
  ),
  seen AS (
    SELECT
      r.*,
      CASE
        WHEN i.idle_ratio IS NOT NULL THEN i.idle_ratio
        WHEN r.tid IN (SELECT w.tid FROM watched AS w) THEN 0.0
      END AS idle_ratio,
      r.rate * (r.rate_to_ts - r.rate_from_ts) / nullif(i.cpu_ns, 0)
        AS cpu_rate,
      -- Each of the tasks of the wb must be known.
      CASE
        WHEN min(r.is_fio) OVER wb = 1 THEN 'fio'
        WHEN min(r.tid IN (SELECT w.tid FROM watched AS w)) OVER wb = 1
          THEN 'sched'
        ELSE 'none'
      END AS demand_basis
    FROM task_rate AS r
    LEFT JOIN spent AS i
      ON i.bdi = r.bdi
      AND coalesce(i.cgroup_ino, 0) = coalesce(r.cgroup_ino, 0)
      AND i.task_id = r.task_id
    WINDOW wb AS (PARTITION BY r.bdi, r.cgroup_ino)
  )
SELECT
  s.bdi, s.cgroup_ino, s.tid, s.comm, s.task_id, s.from_ts, s.active_ns,
  s.events_count, s.dirtied_bytes, s.estimate_bytes, s.basis, s.coverage_ratio,
  s.asked_bytes_per_s, s.slept_ratio, s.rate, s.idle_ratio, s.cpu_rate,
  s.demand_basis,
  CASE
    WHEN s.demand_basis = 'fio'
      THEN CASE WHEN s.asked_bytes_per_s IS NULL THEN 0 ELSE 1 END
    WHEN s.slept_ratio < v.throttled_least_ratio THEN 1
    WHEN s.idle_ratio >= v.idle_least_ratio THEN 1
    ELSE 0
  END AS is_demand_limited
FROM seen AS s
CROSS JOIN wb_rule AS v;

-- @view     _free_call
-- @summary  Which part of its calls in free run each throttled task made in
--   each window.
-- @grain    window, task under a name; order window_index, task_id
-- @column   share_ratio REAL of the task's calls in free run
-- @materialize
-- @cost     460
CREATE VIEW _free_call AS
WITH
  dirtier AS (
    SELECT DISTINCT a.task_id, k.tid, k.from_seq, k.until_seq
    FROM wb_throttle_total AS a
    JOIN wb_task AS k ON k.task_id = a.task_id
  ),
  -- Whether a tid is one task with one name.
  plain AS (
    SELECT 1 AS is_plain
    WHERE NOT EXISTS (
      SELECT t.tid FROM wb_task AS t GROUP BY t.tid HAVING count(*) > 1
    )
  ),
  -- Of most runs. By window, so that only its records are sorted at a time:
  -- a subquery gives one value, so it is JSON.
  simple AS (
    SELECT e.window_index, CAST(j.key AS INTEGER) AS tid, j.value AS calls
    FROM wb_window AS e
    CROSS JOIN json_each(
      (
        SELECT json_group_object(k.tid, k.calls)
        FROM (
          SELECT g.tid, count(*) AS calls
          FROM raw_global_dirty_state AS g
          WHERE g.seq >= e.state_first_seq
            AND g.seq < e.state_after_seq
            AND g.tid IS NOT NULL
          GROUP BY g.tid
        ) AS k
      )
    ) AS j
    WHERE EXISTS (SELECT 1 FROM plain)
    UNION ALL
    SELECT e.window_index, CAST(j.key AS INTEGER), -j.value
    FROM wb_window AS e
    CROSS JOIN json_each(
      (
        SELECT json_group_object(k.tid, k.calls)
        FROM (
          SELECT r.tid, count(*) AS calls
          FROM raw_balance_dirty_pages AS r
          WHERE r.seq >= e.throttle_first_seq
            AND r.seq < e.throttle_after_seq
            AND r.tid IS NOT NULL
          GROUP BY r.tid
        ) AS k
      )
    ) AS j
    WHERE EXISTS (SELECT 1 FROM plain)
      AND EXISTS (SELECT 1 FROM raw_global_dirty_state)
  ),
  seen AS (
    SELECT g.tid, g.seq, g.ts, 1 AS calls
    FROM raw_global_dirty_state AS g
    WHERE NOT EXISTS (SELECT 1 FROM plain)
    UNION ALL
    SELECT r.tid, r.seq, r.ts, -1
    FROM raw_balance_dirty_pages AS r
    WHERE NOT EXISTS (SELECT 1 FROM plain)
      AND EXISTS (SELECT 1 FROM raw_global_dirty_state)
  ),
  counted AS (
    SELECT s.window_index, d.task_id, sum(s.calls) AS calls_count
    FROM simple AS s
    JOIN dirtier AS d ON d.tid = s.tid
    GROUP BY s.window_index, d.task_id
    UNION ALL
    SELECT
      (s.ts - b.start_ts) / p.window_ns,
      d.task_id,
      sum(s.calls)
    FROM seen AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    CROSS JOIN dirtier AS d
      ON task_of!(d, s)
    WHERE in_time!(s.ts, b)
    GROUP BY 1, d.task_id
  )
SELECT
  c.window_index, c.task_id,
  1.0 * c.calls_count / sum(c.calls_count) OVER (PARTITION BY c.task_id)
    AS share_ratio
FROM counted AS c
WHERE c.calls_count > 0;
