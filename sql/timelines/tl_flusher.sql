-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_flusher
-- @title    Work of the flushers
-- @order    100
-- @group    Flusher work: What the kernel's writing threads did, by bdi and by
--   the reason why. Arrows lead to tasks that slept for it, and
--   come from those that ordered it.
-- @track    *: work of this reason: background (above bg_thresh), periodic (old
--   pages), sync (ordered), vmscan (reclaim met dirty pages) and others; before
--   ordered work the time that it stood in the queue
-- @summary  Work items of the flushers by bdi and reason, and their time in the
--   queue.
-- @grain    work item; order ts
-- @flat
-- @needs    wb_work, wb_release, wb_bounds, wb_task_label, wb_task
-- @events   writeback:writeback_start, writeback:writeback_written
-- @optional writeback:writeback_queue, writeback:writeback_exec
CREATE VIEW tl_flusher AS
WITH
  listed AS (
    SELECT
      r.work_seq,
      group_concat(r.flow, ' ') OVER (
        PARTITION BY r.work_seq ORDER BY r.flow ROWS UNBOUNDED PRECEDING
      ) AS flows,
      row_number() OVER (PARTITION BY r.work_seq ORDER BY r.flow DESC) AS place
    FROM wb_release AS r
  ),
  arrow AS (SELECT l.work_seq, l.flows FROM listed AS l WHERE l.place = 1),
  item AS (
    SELECT
      w.*,
      'Writeback/Flusher work/'
        || replace(replace(w.bdi, '\', '\\'), '/', '\/')
        || CASE
          WHEN w.cgroup_ino > 1 THEN ' cgroup ' || w.cgroup_ino
          ELSE ''
        END
        || ' ' || replace(replace(w.reason, '\', '\\'), '/', '\/') AS track,
      k.args AS task_args
    FROM wb_work AS w
    LEFT JOIN wb_task AS t
      ON t.tid = w.tid AND w.seq >= t.from_seq AND w.seq < t.until_seq
    LEFT JOIN wb_task_label AS k ON k.task_id = t.task_id
  )
SELECT
  i.started_ts AS ts,
  coalesce(i.finished_ts, b.last_ts) - i.started_ts AS dur,
  i.track,
  i.reason AS name,
  NULL AS value,
  NULL AS unit,
  coalesce(i.task_args || '|', '')
    || 'bdi="' || replace(replace(i.bdi, '\', '\\'), '|', '\|')
    || '"|cgroup_ino=' || coalesce(i.cgroup_ino, '')
    || '|reason="' || replace(replace(i.reason, '\', '\\'), '|', '\|')
    || '"|bytes=' || i.bytes
    || '|pages_count=' || i.pages_count
    || '|chunks_count=' || i.chunks_count
    || '|queue_wait_ns=' || coalesce(i.started_ts - i.queued_ts, '')
    || '|queued_tid=' || coalesce(i.queued_tid, '')
    || CASE WHEN i.finished_ts IS NULL THEN '|cut=end' ELSE '' END AS args,
  NULL AS rank,
  NULL AS tid,
  a.flows AS flows
FROM item AS i
CROSS JOIN wb_bounds AS b
LEFT JOIN arrow AS a ON a.work_seq = i.seq
WHERE i.started_ts IS NOT NULL
UNION ALL
SELECT
  i.queued_ts,
  coalesce(i.started_ts, b.last_ts) - i.queued_ts,
  i.track,
  'queued',
  NULL,
  NULL,
  'bdi="' || replace(replace(i.bdi, '\', '\\'), '|', '\|')
    || '"|reason="' || replace(replace(i.reason, '\', '\\'), '|', '\|')
    || '"|queued_tid=' || coalesce(i.queued_tid, '')
    || CASE WHEN i.started_ts IS NULL THEN '|cut=end' ELSE '' END,
  NULL,
  NULL,
  NULL
FROM item AS i
CROSS JOIN wb_bounds AS b
WHERE i.queued_ts IS NOT NULL;
