-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_throttle
-- @title    Throttled tasks
-- @order    50
-- @group    Throttled tasks: What balance_dirty_pages() asked of each task,
--   call by call. The sleeps themselves are slices on the threads.
-- @level    One task and the bdi, or cgroup on it, that it writes to
-- @track    pause [time]: sleep that was asked for; 0 = none was due, negative
--   = the task lost more time elsewhere, as in a journal, than its pages cost
-- @track    paused [time]: time that the call had taken until then; above 0 the
--   kernel went round its loop at the limit
-- @track    dirtied: pages that the task brought to this call
-- @summary  pause, paused and dirtied of every balance_dirty_pages event.
-- @grain    sample of one curve; order ts
-- @sorted
-- @needs    wb_throttle, wb_task_label
-- @events   writeback:balance_dirty_pages
CREATE VIEW tl_throttle AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'pause', 'ns'
    UNION ALL SELECT 1, 'paused', 'ns'
    UNION ALL SELECT 2, 'dirtied', 'bytes'
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Throttled tasks/' || k.path || ' on '
    || replace(replace(t.bdi, '\', '\\'), '/', '\/')
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN t.pause_ns
    WHEN 1 THEN t.paused_ns
    WHEN 2 THEN t.dirtied_bytes
  END AS value,
  c.unit AS unit,
  k.task_id AS rank
FROM wb_task_label AS k
CROSS JOIN wb_throttle AS t ON t.tid = k.tid
CROSS JOIN curve AS c
WHERE t.seq >= k.from_seq AND t.seq < k.until_seq;
