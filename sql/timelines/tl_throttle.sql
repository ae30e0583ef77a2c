-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_throttle
-- @title    Throttled tasks
-- @order    10
-- @summary  Sleeps in balance_dirty_pages(), one track for each task and bdi.
-- @grain    pause; order ts
-- @needs    wb_throttle
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
CREATE VIEW tl_throttle AS
SELECT
  t.sleep_ts AS ts,
  t.slept_ns AS dur,
  'Writeback/Throttled tasks/' || replace(t.comm, '/', '\/') || ' ' || t.tid
    || ' on ' || t.bdi AS track,
  CASE
    WHEN t.task_ratelimit_bytes_per_s = 0 THEN 'throttled, at the limit'
    ELSE 'throttled'
  END AS name,
  NULL AS value,
  NULL AS unit,
  'bdi=' || t.bdi
    || '|cgroup_ino=' || coalesce(t.cgroup_ino, '')
    || '|pause_ns=' || t.pause_ns
    || '|slept_basis=' || t.slept_basis
    || '|paused_ns=' || t.paused_ns
    || '|period_ns=' || coalesce(t.period_ns, '')
    || '|think_ns=' || coalesce(t.think_ns, '')
    || '|dirtied_bytes=' || t.dirtied_bytes
    || '|dirty_ratelimit_bytes_per_s=' || t.dirty_ratelimit_bytes_per_s
    || '|task_ratelimit_bytes_per_s=' || t.task_ratelimit_bytes_per_s
    || '|dirty_bytes=' || t.dirty_bytes
    || '|setpoint_bytes=' || t.setpoint_bytes
    || '|limit_bytes=' || t.limit_bytes
    || '|wb_dirty_bytes=' || coalesce(t.wb_dirty_bytes, '')
    || '|wb_setpoint_bytes=' || coalesce(t.wb_setpoint_bytes, '') AS args
FROM wb_throttle AS t
WHERE t.pause_ns > 0 AND t.slept_ns > 0;
