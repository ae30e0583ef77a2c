-- SPDX-License-Identifier: Apache-2.0
-- What a reader of throttling, throughput and copies must know.

-- @warning  goal_is_no_setpoint
-- @scope    throttle_by_task, bdi_dirty, stalls, stalls_by_task
-- @sentence this kernel recorded goal (thresh - thresh / 8), not setpoint;
--   setpoint and position are not to be compared with those of kernels from 3.2
--   on
SELECT 1 AS is_so
-- A trace is of one kernel, so its first event tells.
WHERE (
  SELECT g.goal FROM raw_balance_dirty_pages AS g ORDER BY g.seq LIMIT 1
) IS NOT NULL;

-- @warning  hz_unknown
-- @scope    throttle_by_task
-- @sentence HZ could not be inferred from the recorded times, so intended
--   sleeps are without the half jiffy that they last longer on average
SELECT h.hz
FROM wb_hz AS h
CROSS JOIN raw_event_counts AS c
WHERE h.hz IS NULL AND c.event = 'writeback:balance_dirty_pages';

-- @warning  waits_without_events
-- @scope    throttle_by_task, throttle_summary, throttle_windows, stalls
-- @sentence {calls} calls of balance_dirty_pages() waited {waited_ms} ms, but
--   none of their events with a pause is in the trace; sleeps lack that
SELECT
  count(*) AS calls,
  CAST(total(w.wait_ns) / max(w.ms_ns) AS INTEGER) AS waited_ms
FROM (
  SELECT d.wait_ns, u.ms_ns
  FROM wb_throttle_unseen AS d
  CROSS JOIN wb_units AS u
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
FROM wb_kernel AS k
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
