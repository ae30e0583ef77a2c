-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_task_written
-- @summary  Bytes that each task wrote through write system calls, under each
--   of its names: what a shell writes before it runs a program is the shell's.
--   Standard error (descriptor 2) is left out.
-- @grain    task under a name; order task_id
-- @needs    wb_write_call, wb_task, wb_bounds
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   task_id INTEGER of wb_task
-- @column   tid INTEGER thread id
-- @column   written_bytes INTEGER sum of the calls' results
CREATE VIEW wb_task_written AS
SELECT t.task_id, t.tid, sum(c.written_bytes) AS written_bytes
FROM wb_write_call AS c
CROSS JOIN wb_bounds AS b
JOIN wb_task AS t
  ON t.tid = c.tid AND c.ts >= t.from_ts AND c.ts < t.until_ts
WHERE (c.fd IS NULL OR c.fd <> 2)
  AND c.ts >= b.start_ts
  AND c.ts < b.end_ts
GROUP BY t.task_id, t.tid;
