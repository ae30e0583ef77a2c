-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_task_written
-- @summary  Bytes that each task wrote through write system calls under its
--   present name. Standard error (descriptor 2) is left out, and so are writes
--   of the program that the task ran before an exec.
-- @grain    task; order tid
-- @needs    wb_write_call, wb_task, wb_bounds
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   tid INTEGER thread
-- @column   written_bytes INTEGER sum of the calls' results
CREATE VIEW wb_task_written AS
SELECT c.tid, sum(c.written_bytes) AS written_bytes
FROM wb_write_call AS c
CROSS JOIN wb_bounds AS b
LEFT JOIN wb_task AS t ON t.tid = c.tid
WHERE (c.fd IS NULL OR c.fd <> 2)
  AND (t.named_ts IS NULL OR c.ts > t.named_ts)
  AND c.ts >= b.start_ts
  AND c.ts < b.end_ts
GROUP BY c.tid;
