-- SPDX-License-Identifier: Apache-2.0
-- What each task dirtied, wrote and got of the whole, drawn.

-- @timeline tl_task_dirtied
-- @title    Pages that each task dirtied
-- @order    60
-- @group    Task progress: How far each task has come. Equal slopes mean that
--   tasks are treated alike.
-- @track    dirtied by * [bytes]: what this task dirtied so far, by the source
--   in brackets: folio, probe, proc_io, fio and syscalls are exact, calibrated
--   is an estimate, bound misses what it dirtied in free run
-- @summary  Bytes that each task dirtied so far, by the best source there is.
-- @grain    part of wb_dirtied_part; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, wbscope:balance_dirty_pages_entry
-- @cost     380
CREATE VIEW tl_task_dirtied AS
WITH
  basis AS (
    SELECT d.task_id, min(d.basis) AS basis
    FROM wb_task_dirtied AS d
    GROUP BY d.task_id
  ),
  moment AS (
    SELECT p.ts, p.task_id, sum(p.dirtied_bytes) AS bytes
    FROM wb_dirtied_part AS p
    WHERE p.dirtied_bytes > 0
    GROUP BY p.task_id, p.ts
  )
SELECT
  m.ts,
  NULL AS dur,
  'Writeback/Task progress/dirtied by ' || k.path || ' (' || b.basis || ')'
    AS track,
  NULL AS name,
  CAST(
    sum(m.bytes) OVER (
      PARTITION BY m.task_id ORDER BY m.ts ROWS UNBOUNDED PRECEDING
    ) + 0.5 AS INTEGER
  ) AS value,
  'bytes' AS unit,
  m.task_id AS rank
FROM moment AS m
JOIN basis AS b ON b.task_id = m.task_id
JOIN wb_task AS k ON k.task_id = m.task_id;

-- @timeline tl_task_written
-- @title    Bytes that each task wrote
-- @order    61
-- @group    Task progress
-- @track    written by * [bytes]: bytes of its write system calls, summed up;
--   standard error is left out
-- @summary  Bytes that each task wrote so far, by write system calls.
-- @grain    write system call; order ts
-- @events   syscalls:sys_exit_write|syscalls:sys_exit_pwrite64
--   |syscalls:sys_exit_writev|syscalls:sys_exit_pwritev
--   |syscalls:sys_exit_pwritev2|syscalls:sys_exit_copy_file_range
--   |syscalls:sys_exit_sendfile64
CREATE VIEW tl_task_written AS
WITH
  call AS (
    SELECT c.end_ts, c.written_bytes, t.task_id
    FROM wb_call AS c
    JOIN wb_task AS t
      ON t.tid = c.tid AND c.ts >= t.from_ts AND c.ts < t.until_ts
    WHERE c.written_bytes > 0 AND (c.fd IS NULL OR c.fd <> 2)
  )
SELECT
  c.end_ts AS ts,
  NULL AS dur,
  'Writeback/Task progress/written by ' || k.path AS track,
  NULL AS name,
  sum(c.written_bytes) OVER (
    PARTITION BY c.task_id ORDER BY c.end_ts
    RANGE UNBOUNDED PRECEDING
  ) AS value,
  'bytes' AS unit,
  c.task_id AS rank
FROM call AS c
JOIN wb_task AS k ON k.task_id = c.task_id;

-- @timeline tl_task_share
-- @title    Shares of each task
-- @order    81
-- @group    Fairness
-- @track    throttled share of * [share]: part of the window that the task
--   slept in balance_dirty_pages(), as throttle_windows has it
-- @track    dirtied share of * [share]: its part of what all throttled tasks
--   dirtied in the window, by the source that Task progress names
-- @summary  The share of each window that each task was throttled, and its
--   share of what throttled tasks dirtied.
-- @grain    window, task; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @cost     140
CREATE VIEW tl_task_share AS
WITH
  throttled AS (
    SELECT DISTINCT t.task_id FROM wb_throttle_total AS t
  ),
  cell AS (
    SELECT w.window_index, t.task_id, 0 AS slept_ns, 0 AS dirtied_bytes
    FROM throttled AS t
    -- All of them: a curve keeps its value until it is told another.
    CROSS JOIN wb_window AS w
    UNION ALL
    -- A sleep is taken as starting at its event, or before.
    SELECT
      w.window_index, s.task_id,
      min(s.ts + s.slept_ns, w.window_end_ns, b.end_ts)
        - max(s.ts, w.window_start_ns),
      0
    FROM (
      SELECT t.task_id, min(t.sleep_ts, t.ts) AS ts, t.slept_ns
      FROM wb_throttle_pause AS t
      WHERE t.slept_ns > 0
    ) AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_window AS w
    WHERE touches!(s.ts, s.ts + s.slept_ns, w, b, p)
    UNION ALL
    SELECT d.window_index, d.task_id, 0, d.dirtied_bytes
    FROM wb_dirtied_part AS d
  ),
  summed AS (
    SELECT
      c.window_index, c.task_id,
      sum(c.slept_ns) AS slept_ns,
      sum(c.dirtied_bytes) AS dirtied_bytes
    FROM cell AS c
    GROUP BY c.window_index, c.task_id
  ),
  shared AS (
    SELECT
      s.*,
      sum(s.dirtied_bytes) OVER (PARTITION BY s.window_index) AS all_bytes
    FROM summed AS s
  ),
  curve(place, name) AS (
    SELECT 0, 'throttled share of '
    UNION ALL SELECT 1, 'dirtied share of '
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Fairness/' || c.name || k.path AS track,
  NULL AS name,
  CASE c.place
    WHEN 0
      THEN 1.0 * s.slept_ns
        / (min(w.window_end_ns, b.end_ts) - w.window_start_ns)
    WHEN 1
      THEN coalesce(1.0 * s.dirtied_bytes / nullif(s.all_bytes, 0), 0)
  END AS value,
  'ratio' AS unit,
  s.task_id AS rank
FROM shared AS s
JOIN wb_window AS w ON w.window_index = s.window_index
JOIN wb_task AS k ON k.task_id = s.task_id
CROSS JOIN wb_bounds AS b
CROSS JOIN curve AS c;

-- @timeline tl_throughput
-- @title    Throughput
-- @order    90
-- @group    Throughput: Bytes per second in windows of 2 s, of the whole
--   machine and of each disk.
-- @track    dirtied [rate]: pages that were dirtied
-- @track    written [rate]: pages whose writeback ended, swap included
-- @track    dirtied to written: pages dirtied for each page written; above
--   100 % dirty pages pile up, or are dirtied again
-- @summary  Pages dirtied and written in each window.
-- @grain    sample of one curve; order ts
-- @events   writeback:global_dirty_state
CREATE VIEW tl_throughput AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'dirtied', 'bytes/s'
    UNION ALL SELECT 1, 'written', 'bytes/s'
    UNION ALL SELECT 2, 'dirtied to written', 'ratio'
  )
SELECT
  w.window_start_ns AS ts,
  NULL AS dur,
  'Writeback/Throughput/' || c.name AS track,
  NULL AS name,
  CASE c.place
    -- A window that tells nothing must not keep the value of another.
    WHEN 0 THEN 1.0 * coalesce(w.dirtied_bytes_per_s, 0)
    WHEN 1 THEN 1.0 * coalesce(w.written_bytes_per_s, 0)
    WHEN 2 THEN coalesce(
      1.0 * w.dirtied_bytes_per_s / nullif(w.written_bytes_per_s, 0),
      0
    )
  END AS value,
  c.unit AS unit
FROM throughput AS w
CROSS JOIN curve AS c;

-- @timeline tl_fairness
-- @title    Fairness of each bdi
-- @order    80
-- @group    Fairness
-- @track    Jain's index of *: in % of each window, as query fairness has it
--   with --window, of those that wrote all through it and asked for more than
--   they got; no bar: nothing to compare
-- @summary  Jain's index of each window, by bdi and cgroup.
-- @grain    window, bdi, cgroup; order ts
-- @flat
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   arg_why TEXT in a sentence
-- @column   arg_jain_ratio REAL as in _fairness_window
-- @column   arg_tasks_count INTEGER tasks that are compared
CREATE VIEW tl_fairness AS
SELECT
  f.window_start_ns AS ts,
  min(w.window_end_ns, b.end_ts) - f.window_start_ns AS dur,
  'Writeback/Fairness/Jain''s index of '
    || device_part!(d.device, f.bdi)
    || CASE WHEN f.cgroup_ino > 1 THEN ' cgroup ' || f.cgroup_ino ELSE '' END
    AS track,
  'Jain ' || CAST(round(100 * f.jain_ratio) AS INTEGER) || ' %' AS name,
  NULL AS value,
  NULL AS unit,
  f.tasks_count || ' tasks dirtied pages; Jain''s index of fairness is '
    || printf('%.1f %%', 100 * f.jain_ratio) AS arg_why,
  f.jain_ratio AS arg_jain_ratio,
  f.tasks_count AS arg_tasks_count
FROM _fairness_window AS f
JOIN wb_window AS w ON w.window_start_ns = f.window_start_ns
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_device AS d ON d.bdi = f.bdi
WHERE f.tasks_count > 1 AND f.jain_ratio IS NOT NULL;

-- @timeline tl_jain
-- @title    How fair
-- @order    79
-- @group    Fairness: Jain's index of the run, and of each window of 2 s, in %:
--   100 = all tasks of a bdi were charged equal shares, 25 = one of four had
--   all. Where several bdis had writers, the least even one. Of a window, tasks
--   are compared that wrote all through it and asked for more than they got; no
--   bar: nothing to compare.
-- @parent
-- @summary  Jain's index of the run and of each window, of the least even bdi
--   or cgroup.
-- @grain    the run, window; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   arg_why TEXT in a sentence
-- @column   arg_jain_ratio REAL of a window, as in _fairness_window; of the
--   run, as in query fairness: against the shares that tasks were entitled to
--   where it is known what they asked for
-- @column   arg_tasks_count INTEGER tasks that are compared
-- @column   arg_bdi TEXT backing device
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
CREATE VIEW tl_jain AS
WITH
  ranked AS (
    SELECT
      f.*,
      row_number() OVER (
        PARTITION BY f.window_start_ns
        ORDER BY f.jain_ratio, f.bdi, f.cgroup_ino
      ) AS place
    FROM _fairness_window AS f
    WHERE f.tasks_count > 1 AND f.jain_ratio IS NOT NULL
  ),
  of_run AS (
    SELECT
      r.bdi, r.cgroup_ino,
      r.rate_bytes_per_s AS rate,
      r.rate_bytes_per_s / nullif(r.entitlement_bytes_per_s, 0) AS weighted,
      r.dirtied_basis = 'bound' AND r.coverage_ratio < v.coverage_least_ratio
        AS is_unknown
    FROM wb_task_rate AS r
    CROSS JOIN wb_rule AS v
  ),
  whole AS (
    SELECT
      r.bdi, r.cgroup_ino,
      count(*) AS tasks_count,
      coalesce(
        sum(r.weighted) * sum(r.weighted)
          / nullif(count(r.weighted) * sum(r.weighted * r.weighted), 0),
        sum(r.rate) * sum(r.rate) / nullif(count(*) * sum(r.rate * r.rate), 0)
      ) AS jain_ratio,
      CASE WHEN sum(r.weighted) IS NULL THEN 'equal' ELSE 'fair' END AS shares
    FROM of_run AS r
    GROUP BY r.bdi, r.cgroup_ino
    HAVING count(*) > 1 AND max(coalesce(r.is_unknown, 0)) = 0
  )
SELECT
  b.start_ts AS ts,
  b.end_ts - b.start_ts AS dur,
  'Writeback/Fairness' AS track,
  printf('whole run: Jain %.1f %%', 100 * w.jain_ratio) AS name,
  NULL AS value,
  NULL AS unit,
  'Jain''s index of fairness of the ' || w.tasks_count || ' writers of '
    || w.bdi || ' is ' || printf('%.1f %%', 100 * w.jain_ratio) || ', against '
    || w.shares || ' shares' AS arg_why,
  w.jain_ratio AS arg_jain_ratio,
  w.tasks_count AS arg_tasks_count,
  w.bdi AS arg_bdi,
  w.cgroup_ino AS arg_cgroup_ino
FROM (
  SELECT a.*
  FROM whole AS a
  WHERE a.jain_ratio IS NOT NULL
  ORDER BY a.jain_ratio, a.bdi, a.cgroup_ino
  LIMIT 1
) AS w
CROSS JOIN wb_bounds AS b
UNION ALL
SELECT
  r.window_start_ns,
  min(w.window_end_ns, b.end_ts) - r.window_start_ns,
  'Writeback/Fairness',
  'Jain ' || CAST(round(100 * r.jain_ratio) AS INTEGER) || ' %',
  NULL, NULL,
  r.tasks_count || ' tasks dirtied pages of ' || r.bdi
    || '; Jain''s index of fairness is '
    || printf('%.1f %%', 100 * r.jain_ratio),
  r.jain_ratio, r.tasks_count, r.bdi, r.cgroup_ino
FROM ranked AS r
JOIN wb_window AS w ON w.window_start_ns = r.window_start_ns
CROSS JOIN wb_bounds AS b
WHERE r.place = 1;

-- @view     _fairness_window
-- @summary  Jain's index of what throttled tasks dirtied in each window. Only
--   those are compared that wrote all through the window, and that ask for more
--   than they get, as far as wb_task_rate tells.
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @column   tasks_count INTEGER tasks that are compared
-- @column   jain_ratio REAL 1 = equal shares, 1/n = one task has all; NULL =
--   events tell too little of what the machine dirtied (wb_rule)
-- @materialize
-- @cost     100
CREATE VIEW _fairness_window AS
WITH
  -- Who got all it asked for says nothing of how evenly the rest is shared.
  asking AS (
    SELECT
      r.task_id, r.bdi, r.cgroup_ino, a.first_ts, a.last_ts,
      r.dirtied_basis = 'bound' AND r.coverage_ratio < v.coverage_least_ratio
        AS is_unknown
    FROM wb_task_rate AS r
    CROSS JOIN wb_rule AS v
    JOIN wb_throttle_total AS a
      ON same_writer!(a, r)
    WHERE coalesce(
      r.is_demand_limited, r.slept_ratio < v.throttled_least_ratio, 0
    ) = 0
  ),
  share AS (
    SELECT
      CAST(p.window_index AS INTEGER) AS window_index,
      p.task_id, p.bdi, p.cgroup_ino,
      sum(p.dirtied_bytes) AS bytes
    FROM wb_dirtied_part AS p
    GROUP BY 1, p.task_id, p.bdi, p.cgroup_ino
  ),
  per_window AS (
    SELECT
      w.window_start_ns, s.bdi, s.cgroup_ino,
      count(*) AS tasks_count,
      max(coalesce(a.is_unknown, 0)) AS is_unknown,
      sum(s.bytes) * sum(s.bytes)
        / nullif(count(*) * sum(s.bytes * s.bytes), 0) AS jain_ratio
    FROM share AS s
    JOIN asking AS a
      ON same_writer!(a, s)
    JOIN wb_window AS w
      ON w.window_index = s.window_index
      AND a.first_ts <= w.window_start_ns
      AND a.last_ts >= w.window_end_ns
    WHERE s.bytes > 0
    GROUP BY w.window_start_ns, s.bdi, s.cgroup_ino
  )
SELECT
  f.window_start_ns, f.bdi, f.cgroup_ino, f.tasks_count,
  CASE WHEN f.is_unknown = 0 THEN f.jain_ratio END AS jain_ratio
FROM per_window AS f;
