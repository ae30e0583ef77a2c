-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_task_dirtied
-- @title    Pages that each task dirtied
-- @order    60
-- @group    Task progress: How far each task has come. Equal slopes mean that
--   tasks are treated alike.
-- @track    dirtied by * [bytes]: what this task dirtied so far, by the source
--   in brackets: probe, proc_io, fio and syscalls are exact, calibrated is an
--   estimate, bound misses what it dirtied in free run
-- @summary  Bytes that each task dirtied so far, by the best source there is.
-- @grain    part of wb_dirtied_part; order ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, wbscope:balance_dirty_pages_entry
-- @cost     380
CREATE VIEW tl_task_dirtied AS
WITH
  basis AS (
    SELECT d.task_id, min(d.basis) AS basis
    FROM wb_task_dirtied AS d
    GROUP BY d.task_id
  ),
  moment AS (
    SELECT p.ts, p.task_id, sum(p.dirtied_bytes) AS bytes
    FROM wb_dirtied_part AS p
    WHERE p.dirtied_bytes > 0
    GROUP BY p.task_id, p.ts
  )
SELECT
  m.ts,
  NULL AS dur,
  'Writeback/Task progress/dirtied by ' || k.path || ' (' || b.basis || ')'
    AS track,
  NULL AS name,
  CAST(
    sum(m.bytes) OVER (
      PARTITION BY m.task_id ORDER BY m.ts ROWS UNBOUNDED PRECEDING
    ) + 0.5 AS INTEGER
  ) AS value,
  'bytes' AS unit,
  m.task_id AS rank
FROM moment AS m
JOIN basis AS b ON b.task_id = m.task_id
JOIN wb_task_label AS k ON k.task_id = m.task_id;
