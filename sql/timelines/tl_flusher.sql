-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_flusher
-- @title    Work of the flushers
-- @order    100
-- @group    Flusher work: What the kernel's writing threads did, by bdi and by
--   the reason why, and the commits of journals. Arrows lead from their ends to
--   the ends of waits for them.
-- @track    journal of *: commits of this journal
-- @track    *: work of this reason: background (above bg_thresh), periodic (old
--   pages), sync (ordered), vmscan (reclaim met dirty pages) and others; before
--   ordered work the time that it stood in the queue
-- @summary  Work items of the flushers by bdi and reason, and their time in the
--   queue.
-- @grain    work item; order ts
-- @flat
-- @events   writeback:writeback_start, writeback:writeback_written
-- @optional writeback:writeback_queue, writeback:writeback_exec
-- @column   arg_why TEXT what it did
-- @column   arg_tid INTEGER thread of the flusher; NULL = not known
-- @column   arg_comm TEXT its name then
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   arg_reason TEXT why: background, periodic, sync, vmscan ...
-- @column   arg_bytes INTEGER written
-- @column   arg_pages_count INTEGER pages written
-- @column   arg_chunks_count INTEGER rounds
-- @column   arg_queue_wait_ns INTEGER from being queued to its start
-- @column   arg_queued_tid INTEGER thread that asked for it
-- @column   arg_cut TEXT end: not done when the trace ended
CREATE VIEW tl_flusher AS
WITH
  listed AS (
    SELECT
      r.source_id AS work_seq,
      group_concat(r.flow, ' ') OVER (
        PARTITION BY r.source_id ORDER BY r.flow ROWS UNBOUNDED PRECEDING
      ) AS flows,
      row_number() OVER (PARTITION BY r.source_id ORDER BY r.flow DESC) AS place
    FROM wb_release AS r
    WHERE r.source = 'work'
  ),
  arrow AS (SELECT l.work_seq, l.flows FROM listed AS l WHERE l.place = 1),
  item AS (
    SELECT
      w.*,
      'Writeback/Flusher work/'
        || replace(
          replace(coalesce(d.device || ' ', '') || w.bdi, '\', '\\'),
          '/',
          '\/'
        )
        || CASE
          WHEN w.cgroup_ino > 1 THEN ' cgroup ' || w.cgroup_ino
          ELSE ''
        END
        || ' ' || replace(replace(w.reason, '\', '\\'), '/', '\/') AS track,
      t.comm
    FROM wb_work AS w
    LEFT JOIN wb_device AS d ON d.bdi = w.bdi
    LEFT JOIN wb_task AS t ON task_of!(t, w)
  )
SELECT
  i.started_ts AS ts,
  coalesce(i.finished_ts, b.last_ts) - i.started_ts AS dur,
  i.track,
  i.reason AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  NULL AS tid,
  a.flows AS flows,
  'wrote ' || mib!(i.bytes) || printf(
    ' in %.1f ms for ',
    (coalesce(i.finished_ts, b.last_ts) - i.started_ts) / 1e6
  ) || i.reason AS arg_why,
  CASE WHEN i.comm IS NOT NULL THEN i.tid END AS arg_tid,
  i.comm AS arg_comm,
  i.bdi AS arg_bdi,
  i.cgroup_ino AS arg_cgroup_ino,
  i.reason AS arg_reason,
  i.bytes AS arg_bytes,
  i.pages_count AS arg_pages_count,
  i.chunks_count AS arg_chunks_count,
  i.started_ts - i.queued_ts AS arg_queue_wait_ns,
  i.queued_tid AS arg_queued_tid,
  CASE WHEN i.finished_ts IS NULL THEN 'end' END AS arg_cut
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
  NULL, NULL, NULL, NULL, NULL,
  'ordered, and waits for the flusher',
  NULL, NULL, i.bdi, NULL, i.reason, NULL, NULL, NULL, NULL, i.queued_tid,
  CASE WHEN i.started_ts IS NULL THEN 'end' END
FROM item AS i
CROSS JOIN wb_bounds AS b
WHERE i.queued_ts IS NOT NULL;
