-- SPDX-License-Identifier: Apache-2.0
-- @finding   unexplained
-- @title     Tasks were blocked for unknown reasons
-- @summary   Tasks were blocked for half a second or more outside of all waits
--   that the recorded events show. A disk that was busy meanwhile need not be
--   what they waited for. A warning where one was blocked for half a second or
--   more at a stretch, and this is half of all time that tasks lost or more.
-- @severity  note
-- @confidence measured
-- @sentence  What blocked {tasks} for {cost_task_ns} (longest {longest_ns}) was
--   not recorded[; a disk was busy for most of {busy_ns} of it].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=, kind=blocked
--   outside throttling); longest_ns = max(max_ns, finding=, kind=blocked
--   outside throttling); busy_ns = sum(total_ns, finding=, kind=blocked outside
--   throttling, cause=device latency)
-- @advice    [Record with the profile {profile}, which has the events of disks,
--   file systems and system calls.]
-- @events    sched:sched_switch|wbscope:blocked
-- @column    cost_task_ns INTEGER time that tasks were blocked
-- @column    severity TEXT warning or note
-- @column    longest_ns INTEGER longest of these waits
-- @column    tasks TEXT the one that lost most, and how many more did
-- @column    busy_ns INTEGER of that, in waits with a busy disk; NULL = none
-- @column    profile TEXT deep; NULL = the run has its events
-- @source    docs/stalls.md
WITH
  lost AS (
    SELECT
      l.finding IS NULL AND l.kind = 'blocked outside throttling' AS is_unknown,
      l.task_id, l.comm, l.tid, l.dur, l.cause
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE in_time!(l.ts, b)
  ),
  per_task AS (
    SELECT
      o.comm, o.tid,
      sum(o.dur) AS dur,
      max(o.dur) AS longest_ns,
      sum(CASE o.cause WHEN 'device latency' THEN o.dur END) AS busy_ns,
      row_number() OVER (ORDER BY sum(o.dur) DESC, o.task_id) AS place
    FROM lost AS o
    WHERE o.is_unknown
    GROUP BY o.task_id, o.comm, o.tid
  )
SELECT
  sum(t.dur) AS cost_task_ns,
  CASE
    WHEN max(t.longest_ns) >= v.long_call_ns
      AND sum(t.dur) >= v.most_ratio * (SELECT sum(a.dur) FROM lost AS a)
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  max(t.longest_ns) AS longest_ns,
  max(CASE t.place WHEN 1 THEN task_name!(t) END)
    || CASE WHEN count(*) > 1 THEN ' and ' || (count(*) - 1) || ' more' ELSE ''
    END AS tasks,
  sum(t.busy_ns) AS busy_ns,
  CASE max(w.is_deep) WHEN 0 THEN 'deep' END AS profile
FROM per_task AS t
CROSS JOIN (
  SELECT
    EXISTS (SELECT 1 FROM raw_sched_switch)
    AND recorded!('block:block_rq_issue')
    AND (
      EXISTS (SELECT 1 FROM wb_call AS k WHERE k.is_write >= 0)
      OR recorded!('syscalls:sys_enter_write')
    ) AS is_deep
) AS w
CROSS JOIN wb_rule AS v
GROUP BY v.long_call_ns, v.most_ratio
HAVING sum(t.dur) >= v.long_call_ns;
