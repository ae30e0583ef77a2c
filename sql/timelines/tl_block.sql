-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_block
-- @title    Block requests
-- @order    110
-- @group    Block requests
-- @track    * queued: requests from block_rq_insert to block_rq_issue
-- @track    * in the device: requests from block_rq_issue to their end
-- @summary  Block requests of each disk: their time in the queue and in the
--   device.
-- @grain    part of a request; order ts
-- @flat
-- @events   block:block_rq_issue, block:block_rq_complete
-- @optional block:block_rq_insert
-- @column   arg_why TEXT its size, and where its time went; NULL = in less
--   than a millisecond
-- @column   arg_tid INTEGER thread that sent it; NULL = not known
-- @column   arg_comm TEXT its name then
-- @column   arg_rwbs TEXT as the kernel prints it: R, W, D, F, S, M ...
-- @column   arg_sector INTEGER first sector
-- @column   arg_bytes INTEGER size
-- @column   arg_queue_ns INTEGER in the queue; NULL = never issued
-- @column   arg_device_ns INTEGER in the device; NULL = never issued
-- @column   arg_cut TEXT end: not complete when the trace ended
-- @cost     120
CREATE VIEW tl_block AS
WITH
  listed AS (
    SELECT
      r.source_id AS seq,
      group_concat(r.flow, ' ') OVER (
        PARTITION BY r.source_id ORDER BY r.flow ROWS UNBOUNDED PRECEDING
      ) AS flows,
      row_number() OVER (PARTITION BY r.source_id ORDER BY r.flow DESC) AS place
    FROM wb_release AS r
    WHERE r.source = 'request'
  ),
  arrow AS (SELECT l.seq, l.flows FROM listed AS l WHERE l.place = 1),
  request AS (
    SELECT
      q.ts, q.issue_ts, q.end_ts,
      replace(
        replace(coalesce(d.device || ' ', '') || q.device, '\', '\\'),
        '/',
        '\/'
      ) AS place,
      a.flows, q.op
        || CASE WHEN q.bytes > 0 THEN ' ' || size!(q.bytes) ELSE '' END AS op,
      q.tid, t.comm, q.rwbs, q.sector, q.bytes,
      q.issue_ts - q.ts AS queue_ns,
      q.end_ts - q.issue_ts AS device_ns,
      CASE WHEN q.end_ts >= b.last_ts THEN 'end' END AS cut
    FROM wb_wait_request AS q
    CROSS JOIN wb_bounds AS b
    LEFT JOIN wb_device AS d ON d.bdi = q.device
    LEFT JOIN arrow AS a ON a.seq = q.seq
    LEFT JOIN wb_task AS t ON task_of!(t, q)
  )
SELECT
  r.ts,
  coalesce(r.issue_ts, r.end_ts) - r.ts AS dur,
  'Writeback/Block requests/' || r.place || ' queued' AS track,
  r.op AS name,
  NULL AS value,
  NULL AS unit,
  NULL AS rank,
  NULL AS tid,
  NULL AS flows,
  CASE
    WHEN coalesce(r.device_ns, 0) + coalesce(r.queue_ns, 0) >= v.call_least_ns
      THEN printf(
        '%s: %.1f ms in the queue, %.1f ms in the device',
        r.op, coalesce(r.queue_ns, 0) / 1e6, coalesce(r.device_ns, 0) / 1e6
      )
  END AS arg_why,
  r.tid AS arg_tid,
  r.comm AS arg_comm,
  r.rwbs AS arg_rwbs,
  r.sector AS arg_sector,
  r.bytes AS arg_bytes,
  r.queue_ns AS arg_queue_ns,
  r.device_ns AS arg_device_ns,
  r.cut AS arg_cut
FROM request AS r
CROSS JOIN wb_rule AS v
WHERE r.issue_ts IS NULL OR r.issue_ts > r.ts
UNION ALL
SELECT
  r.issue_ts,
  r.end_ts - r.issue_ts,
  'Writeback/Block requests/' || r.place || ' in the device',
  r.op, NULL, NULL, NULL, NULL, r.flows,
  CASE
    WHEN coalesce(r.device_ns, 0) + coalesce(r.queue_ns, 0) >= v.call_least_ns
      THEN printf(
        '%s: %.1f ms in the queue, %.1f ms in the device',
        r.op, coalesce(r.queue_ns, 0) / 1e6, coalesce(r.device_ns, 0) / 1e6
      )
  END,
  r.tid, r.comm, r.rwbs, r.sector, r.bytes, r.queue_ns, r.device_ns, r.cut
FROM request AS r
CROSS JOIN wb_rule AS v
WHERE r.issue_ts IS NOT NULL;
