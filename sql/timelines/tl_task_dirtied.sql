-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_task_dirtied
-- @title    Pages that each task dirtied
-- @order    60
-- @group    Task progress: How far each task has come. Equal slopes mean that
--   tasks are treated alike.
-- @track    dirtied by * [bytes]: pages charged to this task while it was
--   throttled, summed up; what it dirtied in free run is not in it
-- @summary  Bytes that each task dirtied so far, by balance_dirty_pages.
-- @grain    event that charges pages; order ts
-- @sorted
-- @needs    wb_throttle, wb_task_label
-- @events   writeback:balance_dirty_pages
CREATE VIEW tl_task_dirtied AS
SELECT
  t.ts,
  NULL AS dur,
  'Writeback/Task progress/dirtied by ' || coalesce(k.path, 'tid ' || t.tid)
    AS track,
  NULL AS name,
  sum(t.accounted_bytes) OVER (
    PARTITION BY t.tid, t.task_id ORDER BY t.seq ROWS UNBOUNDED PRECEDING
  ) AS value,
  'bytes' AS unit,
  t.task_id AS rank
FROM wb_throttle AS t
LEFT JOIN wb_task_label AS k ON k.task_id = t.task_id
WHERE t.is_step = 1 AND t.accounted_bytes > 0;
