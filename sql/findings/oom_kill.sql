-- SPDX-License-Identifier: Apache-2.0
-- @finding   oom_kill
-- @title     The kernel killed tasks for memory
-- @summary   oom_kill of /proc/vmstat rose while it was recorded, for the
--   machine or a memory cgroup: what else the run shows is of tasks that were
--   about to be killed.
-- @severity  severe
-- @confidence measured
-- @sentence  The kernel killed {killed_count:task} for lack of memory during
--   the recording.
-- @evidence  run_summary: killed_count = max(value, key=oom_kills_count)
-- @advice    Look for "Killed process" in the kernel log, and at memory.events
--   (oom_kill) of the cgroups: it names the task and whose limit it was.
-- @column    cost_task_ns INTEGER 0
-- @column    killed_count INTEGER gain of oom_kill
-- @source    mm/oom_kill.c __oom_kill_process(); 4.13 and later
SELECT 0 AS cost_task_ns, v.gained_count AS killed_count
FROM wb_vmstat AS v
WHERE v.name = 'oom_kill' AND v.gained_count > 0
ORDER BY killed_count;
