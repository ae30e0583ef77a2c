-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    run_queue
-- @title    How long writers were ready to run and had no CPU
-- @summary  Of each task that writes: how long it could run and another task
--   had its CPU, or its cgroup had used up its share (cpu.max).
-- @read     From a sched_switch that takes a running task off its CPU to the
--   one that brings it back. The time until a task that was woken gets a CPU
--   is not in it. A writer that stands here for most of its time is slow
--   whatever the disk does.
-- @filters  range, tid, task
-- @grain    task under a name; order ready_ns descending
-- @events   sched:sched_switch
-- @optional writeback:balance_dirty_pages, syscalls:sys_exit_write
-- @column   comm TEXT its name; as in throttle_by_task
-- @column   ready_ns INTEGER time until it was back on one
-- @column   seen_ns INTEGER from its first to its last sched_switch
-- @column   ready_ratio REAL ready over seen
-- @metric   ready_ns lower: how long writers had no CPU
SELECT
  r.tid, r.comm, r.ready_count, r.ready_ns, r.longest_ns, r.seen_ns,
  1.0 * r.ready_ns / nullif(r.seen_ns, 0) AS ready_ratio
FROM _ready_task AS r
CROSS JOIN wb_params AS p
WHERE of_task!(r, p)
ORDER BY r.ready_ns DESC, r.tid, r.task_id;

-- @view     _ready_task
-- @summary  How long each task that writes stood ready to run without a CPU:
--   from a sched_switch that takes a running task off its CPU to the one that
--   brings it back. What a task waits for a CPU after it is woken is not in
--   it, so it is a lower bound. A task writes that was throttled or that wrote
--   few_pages_count pages in system calls, to whatever.
-- @grain    task under a name; order ready_ns descending
-- @column   comm TEXT its name
-- @column   ready_count INTEGER times that it was taken off its CPU
-- @column   ready_ns INTEGER time until it was back on one, of those that began
--   in the time of interest
-- @column   longest_ns INTEGER longest of these
-- @column   seen_ns INTEGER from its first to its last sched_switch in that
--   time
-- @materialize
CREATE VIEW _ready_task AS
WITH
  writer AS MATERIALIZED (
    SELECT d.tid
    FROM raw_balance_dirty_pages AS d
    WHERE EXISTS (SELECT 1 FROM raw_sched_switch)
    UNION
    SELECT p.tid
    FROM wb_call AS p
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    WHERE EXISTS (SELECT 1 FROM raw_sched_switch)
    GROUP BY p.tid, v.few_pages_count, u.page_bytes
    HAVING total(max(p.written_bytes, 0)) >= v.few_pages_count * u.page_bytes
  ),
  moves AS (
    SELECT s.tid, s.seq, s.ts, s.is_on, s.left_state
    FROM switched!(k) AS s
    WHERE s.tid IN (SELECT w.tid FROM writer AS w)
  ),
  paired AS (
    SELECT
      m.tid, m.seq, m.ts, m.left_state,
      lead(m.ts) OVER task AS next_ts,
      lead(m.is_on) OVER task AS next_is_on
    FROM moves AS m
    WINDOW task AS (PARTITION BY m.tid ORDER BY m.seq)
  ),
  timed AS (
    SELECT
      t.task_id, t.tid, t.comm, p.ts,
      -- Two switches off the CPU in a row: the one onto it was not recorded.
      CASE
        WHEN p.left_state = 'R' AND coalesce(p.next_is_on, 1) = 1
          THEN coalesce(p.next_ts, b.last_ts) - p.ts
      END AS dur
    FROM paired AS p
    CROSS JOIN wb_bounds AS b
    JOIN wb_task AS t ON task_of!(t, p)
    WHERE in_time!(p.ts, b)
  )
SELECT
  t.task_id, t.tid, t.comm,
  count(t.dur) AS ready_count,
  coalesce(sum(t.dur), 0) AS ready_ns,
  max(t.dur) AS longest_ns,
  max(t.ts + coalesce(t.dur, 0)) - min(t.ts) AS seen_ns
FROM timed AS t
GROUP BY t.task_id, t.tid, t.comm;
