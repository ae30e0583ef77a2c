-- SPDX-License-Identifier: Apache-2.0
-- Calls of tasks that have an event at either end: system calls, reclaim,
-- sleeps.

-- @view     wb_write_call
-- @summary  Finished write system calls, and copies inside the kernel, with the
--   bytes they wrote.
-- @grain    call; order ts, tid
-- @needs    wb_write_pair
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   ts INTEGER ns, when the call was entered; when it returned, where
--   the entry was not recorded
-- @column   end_ts INTEGER ns, when the call returned
-- @column   tid INTEGER thread
-- @column   fd INTEGER descriptor; NULL when the entry was not recorded
-- @column   written_bytes INTEGER result of the call
CREATE VIEW wb_write_call AS
SELECT
  CASE WHEN p.cut = 'start' THEN p.end_ts ELSE p.ts END AS ts,
  coalesce(p.end_ts, p.ts) AS end_ts,
  p.tid,
  p.fd,
  p.written_bytes
FROM wb_write_pair AS p
WHERE p.written_bytes > 0;

-- @view     wb_write_pair
-- @shared
-- @summary  Write system calls, and copies inside the kernel, each from its
--   entry to its return: what they wrote, and which one a task slept in.
-- @grain    call, or the event at one end of it; order tid, seq
-- @needs    raw_sys_enter_write, raw_sys_exit_write, raw_sys_enter_pwrite64,
--   raw_sys_exit_pwrite64, raw_sys_enter_writev, raw_sys_exit_writev,
--   raw_sys_enter_pwritev, raw_sys_exit_pwritev, raw_sys_enter_pwritev2,
--   raw_sys_exit_pwritev2, raw_sys_enter_copy_file_range,
--   raw_sys_exit_copy_file_range, raw_sys_enter_sendfile64,
--   raw_sys_exit_sendfile64, raw_lost_events, wb_bounds
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   seq INTEGER of the event that begins it, or ends it where no
--   beginning was recorded
-- @column   ts INTEGER ns, start
-- @column   end_ts INTEGER ns, end; for cut = lost until when it can have
--   lasted at most, NULL where that is not known
-- @column   tid INTEGER thread
-- @column   what TEXT name of the call
-- @column   is_write INTEGER 0: a copy inside the kernel; 1: a write of which
--   an end is lost; 2: any other write
-- @column   fd INTEGER descriptor; NULL when the entry was not recorded
-- @column   written_bytes INTEGER result of the call; NULL = its return was not
--   recorded
-- @column   cut TEXT start or end: it was under way when the trace began or
--   ended; lost: the event at one end is missing; NULL = whole
-- @index    tid is_write seq
-- @source   kernel/trace/trace_syscalls.c
-- @materialize
CREATE VIEW wb_write_pair AS
WITH
  steps AS (
    SELECT e.tid, e.seq, e.ts, 1 AS call, e.fd, NULL AS ret, 0 AS is_end
    FROM raw_sys_enter_write AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 1, NULL, x.ret, 1
    FROM raw_sys_exit_write AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 2, e.fd, NULL, 0
    FROM raw_sys_enter_pwrite64 AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 2, NULL, x.ret, 1
    FROM raw_sys_exit_pwrite64 AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 3, e.fd, NULL, 0
    FROM raw_sys_enter_writev AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 3, NULL, x.ret, 1
    FROM raw_sys_exit_writev AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 4, e.fd, NULL, 0
    FROM raw_sys_enter_pwritev AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 4, NULL, x.ret, 1
    FROM raw_sys_exit_pwritev AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 5, e.fd, NULL, 0
    FROM raw_sys_enter_pwritev2 AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 5, NULL, x.ret, 1
    FROM raw_sys_exit_pwritev2 AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 6, e.fd, NULL, 0
    FROM raw_sys_enter_copy_file_range AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 6, NULL, x.ret, 1
    FROM raw_sys_exit_copy_file_range AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 7, e.fd, NULL, 0
    FROM raw_sys_enter_sendfile64 AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 7, NULL, x.ret, 1
    FROM raw_sys_exit_sendfile64 AS x
  ),
  -- Calls never nest within a task.
  paired AS (
    SELECT
      s.*,
      lead(s.ts) OVER task AS next_ts,
      lead(s.is_end) OVER task AS next_is_end,
      lead(s.ret) OVER task AS next_ret,
      lag(s.is_end) OVER task AS prev_is_end
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid, s.call ORDER BY s.seq)
  ),
  lost AS (
    SELECT min(l.ts) AS first_ts, max(l.ts) AS last_ts
    FROM raw_lost_events AS l
  ),
  cut AS (
    SELECT
      p.*,
      b.first_ts,
      b.last_ts,
      CASE
        WHEN p.is_end = 0 AND p.next_is_end = 1 THEN NULL
        WHEN p.is_end = 0 AND p.next_ts IS NULL
          AND (l.last_ts IS NULL OR l.last_ts < p.ts) THEN 'end'
        WHEN p.is_end = 1 AND p.prev_is_end IS NULL
          AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN 'start'
        ELSE 'lost'
      END AS cut
    FROM paired AS p
    CROSS JOIN wb_bounds AS b
    CROSS JOIN lost AS l
    WHERE p.is_end = 0 OR p.prev_is_end IS NULL OR p.prev_is_end = 1
  )
SELECT
  c.seq,
  CASE WHEN c.cut = 'start' THEN c.first_ts ELSE c.ts END AS ts,
  CASE
    WHEN c.cut = 'start' THEN c.ts
    WHEN c.cut = 'end' THEN c.last_ts
    WHEN c.is_end = 0 THEN c.next_ts
  END AS end_ts,
  c.tid,
  CASE c.call
    WHEN 1 THEN 'write'
    WHEN 2 THEN 'pwrite64'
    WHEN 3 THEN 'writev'
    WHEN 4 THEN 'pwritev'
    WHEN 5 THEN 'pwritev2'
    WHEN 6 THEN 'copy_file_range'
    ELSE 'sendfile64'
  END AS what,
  CASE WHEN c.call > 5 THEN 0 WHEN c.cut = 'lost' THEN 1 ELSE 2 END AS is_write,
  CASE WHEN c.cut IS NULL THEN c.fd END AS fd,
  CASE WHEN c.is_end = 1 THEN c.ret WHEN c.cut IS NULL THEN c.next_ret END
    AS written_bytes,
  c.cut
FROM cut AS c;

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
