-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_throttle_event
-- @summary  One row for each balance_dirty_pages event, without the name of its
--   task: that takes longer to find than all the rest.
-- @grain    event; order seq
-- @needs    raw_balance_dirty_pages, wb_throttle_charge, wb_throttle_domain,
--   wb_cgroup, wb_units
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch, writeback:balance_dirty_pages_done
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, before the sleep
-- @column   tid INTEGER thread that dirties pages
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
CREATE VIEW wb_throttle_event AS
SELECT
  r.seq,
  r.ts,
  r.tid,
  r.bdi,
  coalesce(r.cgroup_ino, g.cgroup_ino) AS cgroup_ino,
  coalesce(c.is_first, 1) AS is_first,
  coalesce(c.is_last, 1) AS is_last,
  r.pause * u.ms_ns AS pause_ns,
  r.paused * u.ms_ns AS paused_ns,
  r.period * u.ms_ns AS period_ns,
  r.think * u.ms_ns AS think_ns,
  coalesce(c.sleep_ts, r.ts) AS sleep_ts,
  coalesce(c.slept_ns, 0) AS slept_ns,
  c.slept_basis,
  coalesce(c.is_async, 0) AS is_async,
  r.dirtied * u.page_bytes AS dirtied_bytes,
  coalesce(c.accounted_bytes, 0) AS accounted_bytes,
  r.dirtied_pause * u.page_bytes AS dirtied_pause_bytes,
  CASE WHEN d.seq IS NULL THEN 'global' ELSE d.domain END AS domain,
  CASE WHEN d.has_limit = 0 THEN NULL ELSE r."limit" * u.page_bytes END
    AS limit_bytes,
  r.setpoint * u.page_bytes AS setpoint_bytes,
  r.dirty * u.page_bytes AS dirty_bytes,
  CASE
    -- setpoint * wb_thresh, in 32 bits.
    WHEN u.long_bytes = 4 AND r.setpoint * r."limit" >= 4294967296 THEN NULL
    ELSE r.wb_setpoint * u.page_bytes
  END AS wb_setpoint_bytes,
  r.wb_dirty * u.page_bytes AS wb_dirty_bytes,
  r.dirty_ratelimit * u.kib_bytes AS dirty_ratelimit_bytes_per_s,
  r.task_ratelimit * u.kib_bytes AS task_ratelimit_bytes_per_s
FROM raw_balance_dirty_pages AS r
CROSS JOIN wb_units AS u
LEFT JOIN wb_throttle_charge AS c ON c.seq = r.seq
LEFT JOIN wb_throttle_domain AS d ON d.seq = r.seq
LEFT JOIN wb_cgroup AS g ON g.path = r.cgroup_path;
