-- SPDX-License-Identifier: Apache-2.0
-- Calls of tasks that have an event at either end: system calls, reclaim,
-- sleeps.

-- @view     wb_write_call
-- @summary  Finished write system calls, and copies inside the kernel, with the
--   bytes they wrote.
-- @grain    call; order ts, tid
-- @needs    raw_sys_enter_write, raw_sys_exit_write, raw_sys_enter_pwrite64,
--   raw_sys_exit_pwrite64, raw_sys_enter_writev, raw_sys_exit_writev,
--   raw_sys_enter_pwritev, raw_sys_exit_pwritev, raw_sys_enter_pwritev2,
--   raw_sys_exit_pwritev2, raw_sys_enter_copy_file_range,
--   raw_sys_exit_copy_file_range, raw_sys_enter_sendfile64,
--   raw_sys_exit_sendfile64
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   ts INTEGER ns, when the call was entered; when it returned, where
--   the entry was not recorded
-- @column   end_ts INTEGER ns, when the call returned
-- @column   tid INTEGER thread
-- @column   fd INTEGER descriptor; NULL when the entry was not recorded
-- @column   written_bytes INTEGER result of the call
-- @materialize
CREATE VIEW wb_write_call AS
WITH
  steps AS (
    SELECT e.tid, e.seq, e.ts, e.fd, NULL AS ret FROM raw_sys_enter_write AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_pwrite64 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_writev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_pwritev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_pwritev2 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL
    FROM raw_sys_enter_copy_file_range AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, e.fd, NULL FROM raw_sys_enter_sendfile64 AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_write AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_pwrite64 AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_writev AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_pwritev AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_pwritev2 AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret
    FROM raw_sys_exit_copy_file_range AS x
    UNION ALL
    SELECT x.tid, x.seq, x.ts, NULL, x.ret FROM raw_sys_exit_sendfile64 AS x
  ),
  paired AS (
    SELECT
      s.ts,
      s.tid,
      s.ret,
      lag(s.ret IS NULL, 1, 0) OVER task AS has_entry,
      lag(s.ts) OVER task AS entry_ts,
      lag(s.fd) OVER task AS entry_fd
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  )
SELECT
  CASE WHEN p.has_entry THEN p.entry_ts ELSE p.ts END AS ts,
  p.ts AS end_ts,
  p.tid,
  CASE WHEN p.has_entry THEN p.entry_fd END AS fd,
  p.ret AS written_bytes
FROM paired AS p
WHERE p.ret > 0;

-- @view     wb_sync_call
-- @summary  System calls that wait until data are on the disk. A call that was
--   entered before the trace began is left out; one in which its task exits
--   ends there.
-- @grain    call; order ts, tid
-- @needs    raw_sys_enter_fsync, raw_sys_exit_fsync, raw_sys_enter_fdatasync,
--   raw_sys_exit_fdatasync, raw_sys_enter_sync, raw_sys_exit_sync,
--   raw_sys_enter_syncfs, raw_sys_exit_syncfs, raw_sys_enter_sync_file_range,
--   raw_sys_exit_sync_file_range, raw_sys_enter_msync, raw_sys_exit_msync,
--   raw_sched_process_exit, wb_bounds
-- @optional syscalls:sys_enter_fsync, syscalls:sys_exit_fsync,
--   syscalls:sys_enter_sync, syscalls:sys_exit_sync,
--   sched:sched_process_exit
-- @column   ts INTEGER ns, when it was entered
-- @column   end_ts INTEGER ns, when it returned; the trace's end if it did not
-- @column   tid INTEGER thread
-- @column   call TEXT fsync, fdatasync, sync ...
-- @source   kernel/trace/trace_syscalls.c
CREATE VIEW wb_sync_call AS
WITH
  steps AS (
    SELECT e.tid, e.seq, e.ts, 'fsync' AS call, 1 AS is_entry
    FROM raw_sys_enter_fsync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'fsync', 0
    FROM raw_sys_exit_fsync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'fdatasync', 1
    FROM raw_sys_enter_fdatasync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'fdatasync', 0
    FROM raw_sys_exit_fdatasync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync', 1
    FROM raw_sys_enter_sync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'sync', 0
    FROM raw_sys_exit_sync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'syncfs', 1
    FROM raw_sys_enter_syncfs AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'syncfs', 0
    FROM raw_sys_exit_syncfs AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync_file_range', 1
    FROM raw_sys_enter_sync_file_range AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'sync_file_range', 0
    FROM raw_sys_exit_sync_file_range AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'msync', 1
    FROM raw_sys_enter_msync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'msync', 0
    FROM raw_sys_exit_msync AS x
  ),
  ends AS (
    SELECT s.tid, s.seq, s.ts, s.call, s.is_entry
    FROM steps AS s
    UNION ALL
    SELECT x.tid, x.seq, x.ts, c.call, 0
    FROM raw_sched_process_exit AS x
    JOIN (SELECT DISTINCT s.tid, s.call FROM steps AS s) AS c ON c.tid = x.tid
  ),
  paired AS (
    SELECT
      s.ts,
      s.tid,
      s.call,
      s.is_entry,
      lead(s.is_entry) OVER task AS next_is_entry,
      lead(s.ts) OVER task AS next_ts
    FROM ends AS s
    WINDOW task AS (PARTITION BY s.tid, s.call ORDER BY s.seq)
  )
SELECT
  p.ts,
  coalesce(p.next_ts, b.last_ts) AS end_ts,
  p.tid,
  p.call
FROM paired AS p
CROSS JOIN wb_bounds AS b
WHERE p.is_entry = 1 AND coalesce(p.next_is_entry, 0) = 0;
