-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_task_written
-- @title    Bytes that each task wrote
-- @order    61
-- @group    Task progress
-- @track    written by * [bytes]: bytes of its write system calls, summed up;
--   standard error is left out
-- @summary  Bytes that each task wrote so far, by write system calls.
-- @grain    write system call; order ts
-- @events   syscalls:sys_exit_write|syscalls:sys_exit_pwrite64
--   |syscalls:sys_exit_writev|syscalls:sys_exit_pwritev
--   |syscalls:sys_exit_pwritev2|syscalls:sys_exit_copy_file_range
--   |syscalls:sys_exit_sendfile64
CREATE VIEW tl_task_written AS
WITH
  call AS (
    SELECT c.end_ts, c.written_bytes, t.task_id
    FROM wb_write_call AS c
    JOIN wb_task AS t
      ON t.tid = c.tid AND c.ts >= t.from_ts AND c.ts < t.until_ts
    WHERE c.fd IS NULL OR c.fd <> 2
  )
SELECT
  c.end_ts AS ts,
  NULL AS dur,
  'Writeback/Task progress/written by ' || k.path AS track,
  NULL AS name,
  sum(c.written_bytes) OVER (
    PARTITION BY c.task_id ORDER BY c.end_ts
    RANGE UNBOUNDED PRECEDING
  ) AS value,
  'bytes' AS unit,
  c.task_id AS rank
FROM call AS c
JOIN wb_task_label AS k ON k.task_id = c.task_id;
