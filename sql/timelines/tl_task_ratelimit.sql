-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_task_ratelimit
-- @title    Rate limit of each task
-- @order    41
-- @group    Bandwidth
-- @track    task_ratelimit of * [rate]: rate that this task was allowed to
--   dirty pages at; 0 = it stood at the limit
-- @summary  What each task was allowed, on the axis of its bdi's bandwidth.
-- @grain    balance_dirty_pages event; order ts
-- @sorted
-- @needs    wb_throttle, wb_task_label
-- @events   writeback:balance_dirty_pages
CREATE VIEW tl_task_ratelimit AS
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Bandwidth/' || replace(replace(t.bdi, '\', '\\'), '/', '\/')
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/task_ratelimit of ' || k.path AS track,
  NULL AS name,
  t.task_ratelimit_bytes_per_s AS value,
  'bytes/s' AS unit,
  k.task_id AS rank
FROM wb_task_label AS k
CROSS JOIN wb_throttle AS t ON t.tid = k.tid
WHERE t.seq >= k.from_seq AND t.seq < k.until_seq;
