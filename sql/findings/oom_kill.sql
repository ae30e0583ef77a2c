-- SPDX-License-Identifier: Apache-2.0
-- @finding   oom_kill
-- @title     The kernel killed tasks for memory
-- @summary   oom_kill of /proc/vmstat rose while it was recorded, for the
--   machine or a memory cgroup: what else the run shows is of tasks that were
--   about to be killed.
-- @severity  severe
-- @confidence measured
-- @sentence  The kernel killed {killed_count:task} for lack of memory during
--   the recording[; {likely_task} exited right after it had reclaimed memory of
--   its cgroup in vain][; {other_task} exited right after it had reclaimed
--   memory in vain].
-- @evidence  run_summary: killed_count = max(value, key=oom_kills_count)
-- @advice    Look for "Killed process" in the kernel log, and at memory.events
--   (oom_kill) of the cgroups: it names the task and whose limit it was.
-- @optional  vmscan:mm_vmscan_memcg_reclaim_end,
--   vmscan:mm_vmscan_direct_reclaim_end, sched:sched_process_exit
-- @column    cost_task_ns INTEGER 0
-- @column    killed_count INTEGER gain of oom_kill
-- @column    likely_task TEXT of those that exited within half a second after
--   they had reclaimed nothing, the last, if that was of its memory cgroup
-- @column    other_task TEXT the same, if it was the machine's
-- @source    mm/oom_kill.c __oom_kill_process(); 4.13 and later
WITH
  reclaimed AS (
    SELECT m.tid, m.ts, m.nr_reclaimed, 1 AS is_memcg
    FROM raw_mm_vmscan_memcg_reclaim_end AS m
    UNION ALL
    SELECT d.tid, d.ts, d.nr_reclaimed, 0
    FROM raw_mm_vmscan_direct_reclaim_end AS d
  ),
  killed AS (
    SELECT task_name!(k) AS task, r.is_memcg
    FROM reclaimed AS r
    CROSS JOIN wb_rule AS l
    JOIN raw_sched_process_exit AS x
      ON x.tid = r.tid AND x.ts BETWEEN r.ts AND r.ts + l.long_call_ns
    JOIN wb_task AS k ON task_of!(k, x)
    WHERE r.nr_reclaimed = 0
    ORDER BY x.ts DESC, r.ts DESC
    LIMIT 1
  )
SELECT
  0 AS cost_task_ns,
  v.gained_count AS killed_count,
  CASE k.is_memcg WHEN 1 THEN k.task END AS likely_task,
  CASE k.is_memcg WHEN 0 THEN k.task END AS other_task
FROM wb_vmstat AS v
LEFT JOIN killed AS k ON 1 = 1
WHERE v.name = 'oom_kill' AND v.gained_count > 0
ORDER BY killed_count;
