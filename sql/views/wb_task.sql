-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_task
-- @summary  Tasks by thread id: name, when it got that name, and how long the
--   trace saw it.
-- @grain    task; order tid
-- @needs    raw_task, raw_sched_switch, raw_sched_process_exec
-- @optional sched:sched_switch, sched:sched_process_exec
-- @column   tid INTEGER thread id
-- @column   comm TEXT last known name; tid in words where none is known
-- @column   first_ts INTEGER first event in this task's context
-- @column   last_ts INTEGER last event in this task's context
-- @column   named_ts INTEGER the task ran another program up to this time: its
--   last exec or, where exec was not recorded, when sched_switch last had it
--   under another name; NULL when neither was seen
-- @materialize
CREATE VIEW wb_task AS
WITH
  other_name AS (
    SELECT s.prev_pid AS tid, s.ts
    FROM raw_sched_switch AS s
    JOIN raw_task AS t ON t.tid = s.prev_pid
    WHERE s.prev_comm <> t.comm
      AND s.prev_pid <> 0
      AND NOT EXISTS (SELECT 1 FROM raw_sched_process_exec)
    UNION ALL
    SELECT s.next_pid, s.ts
    FROM raw_sched_switch AS s
    JOIN raw_task AS t ON t.tid = s.next_pid
    WHERE s.next_comm <> t.comm
      AND s.next_pid <> 0
      AND NOT EXISTS (SELECT 1 FROM raw_sched_process_exec)
    UNION ALL
    SELECT x.tid, x.ts
    FROM raw_sched_process_exec AS x
  ),
  named AS (
    SELECT o.tid, max(o.ts) AS named_ts
    FROM other_name AS o
    GROUP BY o.tid
  )
SELECT
  t.tid,
  coalesce(t.comm, 'tid ' || t.tid) AS comm,
  t.first_ts,
  t.last_ts,
  n.named_ts
FROM raw_task AS t
LEFT JOIN named AS n ON n.tid = t.tid;
