-- SPDX-License-Identifier: Apache-2.0
-- What a reader of throttling, throughput and copies must know.

-- @warning  goal_is_no_setpoint
-- @scope    throttle_by_task, bdi_dirty, stalls, stalls_by_task
-- @sentence this kernel recorded goal (thresh - thresh / 8), not setpoint; do
--   not compare setpoint and position with those of kernels from 3.2 on
SELECT 1 AS is_so
-- A trace is of one kernel, so its first event tells.
WHERE (
  SELECT g.goal FROM raw_balance_dirty_pages AS g ORDER BY g.seq LIMIT 1
) IS NOT NULL;

-- @warning  hz_unknown
-- @scope    throttle_by_task
-- @sentence HZ could not be inferred from the recorded times, so intended
--   sleeps are without the half jiffy that they last longer on average
SELECT s.value
FROM run_summary AS s
CROSS JOIN raw_event_counts AS c
WHERE s.key = 'hz'
  AND s.value = 'unknown'
  AND c.event = 'writeback:balance_dirty_pages';

-- @warning  waits_without_events
-- @scope    throttle_by_task, throttle_summary, throttle_windows, stalls
-- @sentence {calls} calls of balance_dirty_pages() waited {waited_ms} ms, but
--   none of their events with a pause is in the trace; sleeps lack that
SELECT
  count(*) AS calls,
  CAST(total(w.wait_ns) / max(w.ms_ns) AS INTEGER) AS waited_ms
FROM (
  SELECT d.wait_ns, u.ms_ns
  FROM raw_balance_dirty_pages_done AS d
  CROSS JOIN wb_units AS u
  WHERE d.wait_ns > 0
    AND d.wait_ns <= d.total_ns
    AND d.ts - d.total_ns >= u.first_ts
    AND d.seq NOT IN (
      SELECT p.done_seq
      FROM wb_throttle_pause AS p
      WHERE p.done_seq IS NOT NULL
        AND p.slept_basis = 'measured'
        AND p.slept_ns > 0
    )
) AS w
HAVING count(*) > 0;

-- @warning  short_window
-- @scope    throughput
-- @sentence windows are shorter than the second in which the kernel folds its
--   counters, so single windows are noisy
SELECT p.window_ns
FROM wb_params AS p
CROSS JOIN wb_units AS u
WHERE p.window_ns < u.second_ns;

-- @warning  writes_not_recorded
-- @scope    copy_and_sync
-- @sentence write calls were not recorded, so there are no copies; add -e
--   syscalls:sys_enter_write -e syscalls:sys_exit_write
SELECT k.release
FROM wb_units AS k
WHERE NOT EXISTS (
  SELECT 1
  FROM raw_event_format AS f
  WHERE f.event IN (
    'syscalls:sys_exit_write',
    'syscalls:sys_exit_writev',
    'syscalls:sys_exit_pwrite64',
    'syscalls:sys_exit_copy_file_range',
    'syscalls:sys_exit_sendfile64'
  )
);

-- @warning  little_coverage
-- @scope    throttle_by_task, ratelimit_error, fairness, fairness_tasks
-- @sentence events charge {covered} % of what the machine dirtied, and the
--   trace does not show which tasks dirtied the rest: their bytes are lower
--   bounds, and there is no index of fairness; wbscope record measures them
--   with probes
SELECT CAST(100 * max(d.coverage_ratio) + 0.5 AS INTEGER) AS covered
FROM wb_task_dirtied AS d
CROSS JOIN wb_rule AS v
WHERE d.basis = 'bound'
  AND d.is_incidental = 0
  AND d.coverage_ratio < v.coverage_least_ratio
HAVING count(*) > 0;

-- @warning  demand_unknown
-- @scope    fairness, fairness_tasks
-- @sentence the demand of the writers of {bdi} is unknown, so there is no
--   weighted index: record sched_switch (profile deep), or let fio write
--   fio.json
SELECT
  min(r.bdi)
    || CASE WHEN min(r.bdi) <> max(r.bdi) THEN ' and others' ELSE '' END AS bdi
FROM wb_task_rate AS r
CROSS JOIN wb_params AS p
WHERE r.demand_basis = 'none'
  AND p.by_window = 0
  AND (p.bdi IS NULL OR r.bdi = p.bdi)
HAVING count(*) > 0;

-- @warning  disk_not_known
-- @slug     disk-unknown
-- @scope    stalls, stalls_by_task, lost_time
-- @sentence whether the disk of {bdi} was busy is unknown: it has no block
--   requests (LVM, dm-crypt, md, btrfs), and the disks below it are unknown
--   ({disks} wrote); wbscope record notes them, or write the file stacks by
--   hand, with lines such as {bdi} {disk}
SELECT DISTINCT s.bdi, s.wrote_disks AS disks, s.wrote_disk AS disk
FROM wb_stall AS s
WHERE s.wrote_disks IS NOT NULL
ORDER BY s.bdi;

-- @warning  limits_changed
-- @slug     limit-changed
-- @scope    dirty_limits
-- @sentence the dirty limit changed in the run, from {changes} (vm.dirty_* was
--   set, or much memory was freed): thresholds are means since the last change
SELECT
  group_concat(CASE WHEN t.place <= 3 THEN t.text END, ', from ')
    || CASE
      WHEN count(*) > 3 THEN ' and ' || (count(*) - 3) || ' more'
      ELSE ''
    END AS changes
FROM (
  SELECT
    round(1.0 * c.from_bytes / u.kib_bytes / u.kib_bytes, 1)
      || ' to ' || round(1.0 * c.to_bytes / u.kib_bytes / u.kib_bytes, 1)
      || ' MiB after ' || round(1.0 * c.after_ns / u.second_ns, 1)
      || ' s' AS text,
    row_number() OVER (ORDER BY c.ts) AS place
  FROM limit_changes AS c
  CROSS JOIN wb_units AS u
  ORDER BY c.ts
) AS t
HAVING count(*) > 0;
