-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle
-- @summary  One row for each balance_dirty_pages event: what was asked of the
--   task, what it did, and the state that it was decided on.
-- @grain    event; order seq
-- @needs    wb_throttle_event, wb_task
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch, writeback:balance_dirty_pages_done
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, before the sleep
-- @column   tid INTEGER thread that dirties pages
-- @column   comm TEXT its name at that time
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_first INTEGER 1: first event of a call of balance_dirty_pages();
--   0: the call went round its loop again
-- @column   is_last INTEGER 1: last event of a call
-- @column   pause_ns INTEGER intended sleep; 0 or less = no sleep
-- @column   paused_ns INTEGER time spent in this call so far
-- @column   period_ns INTEGER time that the dirtied pages are worth
-- @column   think_ns INTEGER time since the scheduled end of the last pause
-- @column   sleep_ts INTEGER ns, start of the sleep; ts where it was not
--   measured
-- @column   slept_ns INTEGER best measure of the sleep that followed; 0 = none
-- @column   slept_basis TEXT measured: by the kernel, told when the call
--   returned; sched: between two sched_switch; paused: from the next event of
--   the call; intended: pause plus half a jiffy
-- @column   is_async INTEGER 1: the pause was not slept (io_uring NOWAIT)
-- @column   dirtied_bytes INTEGER as recorded; repeats, so never add it up
-- @column   accounted_bytes INTEGER bytes that this event adds to what its task
--   dirtied; adding these up gives a lower bound (pages that an exited task
--   left on the CPU are charged to the next one)
-- @column   dirtied_pause_bytes INTEGER poll threshold that was in force
-- @column   domain TEXT whose limits throttled: global or memcg; NULL = unknown
-- @column   limit_bytes INTEGER hard limit of the domain; NULL where a memory
--   cgroup throttled up to 6.14.1, which recorded the machine's limit
-- @column   setpoint_bytes INTEGER where the dirty pages should settle
-- @column   dirty_bytes INTEGER dirty and writeback pages of the domain
-- @column   wb_setpoint_bytes INTEGER this wb's share of the setpoint; NULL on
--   32-bit kernels with limits so high that the kernel's product wraps
-- @column   wb_dirty_bytes INTEGER dirty and writeback pages of this wb
-- @column   dirty_ratelimit_bytes_per_s INTEGER base rate of the wb
-- @column   task_ratelimit_bytes_per_s INTEGER rate that the task may dirty at
-- @source   mm/page-writeback.c balance_dirty_pages(), 3.2 to 7.x
CREATE VIEW wb_throttle AS
SELECT
  e.seq,
  e.ts,
  e.tid,
  coalesce(t.comm, 'tid ' || e.tid) AS comm,
  t.task_id,
  e.bdi,
  e.cgroup_ino,
  e.is_first,
  e.is_last,
  e.pause_ns,
  e.paused_ns,
  e.period_ns,
  e.think_ns,
  e.sleep_ts,
  e.slept_ns,
  e.slept_basis,
  e.is_async,
  e.dirtied_bytes,
  e.accounted_bytes,
  e.dirtied_pause_bytes,
  e.domain,
  e.limit_bytes,
  e.setpoint_bytes,
  e.dirty_bytes,
  e.wb_setpoint_bytes,
  e.wb_dirty_bytes,
  e.dirty_ratelimit_bytes_per_s,
  e.task_ratelimit_bytes_per_s
FROM wb_throttle_event AS e
LEFT JOIN wb_task AS t
  ON t.tid = e.tid AND e.seq >= t.from_seq AND e.seq < t.until_seq;
