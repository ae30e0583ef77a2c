-- SPDX-License-Identifier: Apache-2.0
-- When tasks were blocked (in D), and who ended it.

-- @view     wb_wait_end
-- @summary  Uninterruptible sleeps of each task, and who ended each of 1 ms and
--   more: by the event that fired when the task was woken. A task that wakes
--   another one held what that waited for: a lock, a frozen file system. An
--   interrupt runs in the place of any task, so a waker counts as a task only
--   outside of interrupts. Sleeps are told by sched_switch; else those of 1 ms
--   and more, by the event that record makes.
-- @grain    sleep; order seq
-- @key      seq
-- @optional sched:sched_switch, sched:sched_waking, wbscope:blocked
-- @column   seq INTEGER of the sched_switch that took the task off its CPU;
--   without it of the event that woke it
-- @column   ts INTEGER ns, when the task left the CPU
-- @column   tid INTEGER thread that sleeps
-- @column   ran_ts INTEGER ns, when it last got the CPU before; NULL = not seen
-- @column   end_ts INTEGER ns, when it ran again, without sched_switch when it
--   was woken; the trace's end if it was not
-- @column   wake_ts INTEGER ns, when it was woken; NULL = not recorded
-- @column   wake_seq INTEGER of the event that tells it
-- @column   ender TEXT journal: the thread of one; interrupt: a completion or a
--   timer; kernel: a kworker, the flusher among them, or another thread of the
--   kernel; task: a program; NULL = not recorded, or a program or an interrupt
--   in its place
-- @column   waker_tid INTEGER thread in which it was woken
-- @column   waker_comm TEXT its last known name
-- @source   include/trace/events/sched.h; kernel/sched/core.c try_to_wake_up();
--   include/linux/trace_events.h TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ
-- @materialize
CREATE VIEW wb_wait_end AS
WITH
  paired AS (
    SELECT
      s.tid, s.seq, s.ts, s.left_state,
      lag(s.ts) OVER task AS ran_ts,
      lead(s.ts) OVER task AS next_ts,
      lead(s.is_on) OVER task AS next_is_on
    FROM switched!(k) AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  ),
  slept AS (
    SELECT
      p.seq, p.ts, p.tid, p.ran_ts,
      coalesce(p.next_ts, b.last_ts) AS end_ts,
      NULL AS wake_ts,
      NULL AS waker_tid,
      NULL AS common_flags
    FROM paired AS p
    CROSS JOIN wb_units AS b
    WHERE p.left_state = 'D'
      -- Two switches off the CPU in a row: the one onto it was not recorded.
      AND coalesce(p.next_is_on, 1) = 1
    UNION ALL
    SELECT
      w.seq, w.ts - w.blocked_ns, w.pid, NULL, w.ts, w.ts, w.tid, w.common_flags
    FROM raw_blocked AS w
    WHERE NOT EXISTS (SELECT 1 FROM raw_sched_switch)
  ),
  -- A sleep is ended by the first waking after it began.
  steps AS (
    SELECT s.tid, s.seq, NULL AS wake_seq
    FROM slept AS s
    CROSS JOIN wb_rule AS v
    WHERE s.wake_ts IS NULL AND s.end_ts - s.ts >= v.call_least_ns
    UNION ALL
    SELECT w.pid, w.seq, w.seq
    FROM raw_sched_waking AS w
    WHERE w.pid IN (SELECT s.tid FROM slept AS s WHERE s.wake_ts IS NULL)
  ),
  followed AS (
    SELECT
      s.seq, s.wake_seq,
      lead(s.wake_seq) OVER (PARTITION BY s.tid ORDER BY s.seq) AS next_seq
    FROM steps AS s
  ),
  woken AS (
    SELECT
      s.seq, s.ts, s.tid, s.ran_ts, s.end_ts,
      coalesce(s.wake_ts, w.ts) AS wake_ts,
      coalesce(s.waker_tid, w.tid) AS waker_tid,
      coalesce(s.common_flags, w.common_flags) AS common_flags,
      coalesce(w.seq, s.seq) AS wake_seq
    FROM slept AS s
    LEFT JOIN followed AS f ON f.seq = s.seq AND f.wake_seq IS NULL
    LEFT JOIN raw_sched_waking AS w ON w.seq = f.next_seq AND w.ts <= s.end_ts
  )
SELECT
  w.seq, w.ts, w.tid, w.ran_ts, w.end_ts, w.wake_ts, w.wake_seq,
  CASE
    WHEN w.waker_tid IS NULL THEN NULL
    WHEN w.waker_tid = 0 OR w.common_flags & 24 THEN 'interrupt'
    WHEN t.comm GLOB 'jbd2/*' OR t.comm GLOB 'btrfs-trans*'
      OR t.comm GLOB 'xfsaild/*' THEN 'journal'
    WHEN t.comm GLOB 'irq/*' OR t.comm GLOB 'ksoftirqd/*' THEN 'interrupt'
    WHEN is_kernel!(t.comm) THEN 'kernel'
    WHEN w.common_flags IS NOT NULL AND t.comm IS NOT NULL THEN 'task'
  END AS ender,
  w.waker_tid,
  t.comm AS waker_comm
FROM woken AS w
LEFT JOIN raw_task AS t ON t.tid = w.waker_tid;
