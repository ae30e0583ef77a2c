-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_rt_task
-- @summary  Tasks that ran with real-time (or, from 6.12, deadline) priority:
--   the kernel gives them dirty thresholds a quarter and more above all others.
-- @grain    task; order tid
-- @needs    raw_sched_switch
-- @optional sched:sched_switch
-- @column   tid INTEGER thread
-- @source   mm/page-writeback.c domain_dirty_limits();
--   include/linux/sched/rt.h: priorities below 100 are real-time
-- @materialize
CREATE VIEW wb_rt_task AS
SELECT s.prev_pid AS tid
FROM raw_sched_switch AS s
WHERE s.prev_prio < 100 AND s.prev_pid <> 0
UNION
SELECT s.next_pid
FROM raw_sched_switch AS s
WHERE s.next_prio < 100 AND s.next_pid <> 0;
