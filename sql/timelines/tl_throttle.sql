-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_throttle
-- @title    Throttled tasks
-- @order    50
-- @group    Throttled tasks: What balance_dirty_pages() asked of each task,
--   call by call, until the end of its last pause. The sleeps themselves are
--   slices on the threads.
-- @level    One task and the bdi, or cgroup on it, that it writes to
-- @track    pause: sleep that was asked for; 0 = none was due, negative
--   = the task lost more time elsewhere, as in a journal, than its pages cost
-- @track    paused: time that the call had taken until then; above 0 the
--   kernel went round its loop at the limit
-- @track    dirtied: pages that the task brought to this call
-- @summary  pause, paused and dirtied of every balance_dirty_pages event.
-- @grain    sample of one curve; order ts
-- @events   writeback:balance_dirty_pages
-- @cost     180
CREATE VIEW tl_throttle AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'pause', 'ns'
    UNION ALL SELECT 1, 'paused', 'ns'
    UNION ALL SELECT 2, 'dirtied', 'bytes'
  ),
  told AS (
    SELECT
      t.ts, t.bdi, t.cgroup_ino, t.task_id, t.path, t.pause_ns, t.paused_ns,
      t.dirtied_bytes
    FROM wb_throttle_drawn AS t
    UNION ALL
    -- After the last pause on this wb nothing is asked any more.
    SELECT t.end_ts + 1, t.bdi, t.cgroup_ino, t.task_id, t.path, 0, 0, 0
    FROM (
      SELECT max(l.seq) AS seq
      FROM wb_throttle_drawn AS l
      GROUP BY l.task_id, l.bdi, l.cgroup_ino
    ) AS e
    CROSS JOIN wb_throttle_drawn AS t ON t.seq = e.seq
  )
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Throttled tasks/' || t.path || ' on '
    || replace(
      replace(coalesce(d.device || ' ', '') || t.bdi, '\', '\\'),
      '/',
      '\/'
    )
    || CASE WHEN t.cgroup_ino > 1 THEN ' cgroup ' || t.cgroup_ino ELSE '' END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN t.pause_ns
    WHEN 1 THEN t.paused_ns
    WHEN 2 THEN t.dirtied_bytes
  END AS value,
  c.unit AS unit,
  t.task_id AS rank
FROM told AS t
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = t.bdi;
