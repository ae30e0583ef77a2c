-- SPDX-License-Identifier: Apache-2.0
-- Calls of tasks that have an event at either end: system calls, reclaim,
-- sleeps.

-- @view     wb_write_call
-- @summary  Finished write system calls, and copies inside the kernel, with the
--   bytes they wrote.
-- @grain    call; order ts, tid
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write
-- @column   ts INTEGER ns, when the call was entered; when it returned, where
--   the entry was not recorded
-- @column   end_ts INTEGER ns, when the call returned
-- @column   written_bytes INTEGER result of the call
CREATE VIEW wb_write_call AS
SELECT
  CASE WHEN p.cut = 'start' THEN p.end_ts ELSE p.ts END AS ts,
  coalesce(p.end_ts, p.ts) AS end_ts,
  p.tid, p.fd, p.written_bytes
FROM wb_write_pair AS p
WHERE p.written_bytes > 0;

-- @view     wb_write_pair
-- @shared
-- @summary  Write system calls, and copies inside the kernel, each from its
--   entry to its return: what they wrote, and which one a task slept in.
-- @grain    call, or the event at one end of it; order tid, seq
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
  -- Calls never nest within a task: before a return is its entry, or that is
  -- lost.
  -- What returned; without an entry where that is lost, or before the trace.
  returned AS (
    SELECT
      x.tid,
      1 AS call,
      x.seq AS exit_seq,
      x.ts AS exit_ts,
      x.ret, x.prev_seq,
      e.seq AS enter_seq,
      e.ts AS enter_ts,
      e.fd
    FROM raw_sys_exit_write AS x
    LEFT JOIN raw_sys_enter_write AS e ON e.seq = x.prev_seq
    UNION ALL
    SELECT x.tid, 2, x.seq, x.ts, x.ret, x.prev_seq, e.seq, e.ts, e.fd
    FROM raw_sys_exit_pwrite64 AS x
    LEFT JOIN raw_sys_enter_pwrite64 AS e ON e.seq = x.prev_seq
    UNION ALL
    SELECT x.tid, 3, x.seq, x.ts, x.ret, x.prev_seq, e.seq, e.ts, e.fd
    FROM raw_sys_exit_writev AS x
    LEFT JOIN raw_sys_enter_writev AS e ON e.seq = x.prev_seq
    UNION ALL
    SELECT x.tid, 4, x.seq, x.ts, x.ret, x.prev_seq, e.seq, e.ts, e.fd
    FROM raw_sys_exit_pwritev AS x
    LEFT JOIN raw_sys_enter_pwritev AS e ON e.seq = x.prev_seq
    UNION ALL
    SELECT x.tid, 5, x.seq, x.ts, x.ret, x.prev_seq, e.seq, e.ts, e.fd
    FROM raw_sys_exit_pwritev2 AS x
    LEFT JOIN raw_sys_enter_pwritev2 AS e ON e.seq = x.prev_seq
    UNION ALL
    SELECT x.tid, 6, x.seq, x.ts, x.ret, x.prev_seq, e.seq, e.ts, e.fd
    FROM raw_sys_exit_copy_file_range AS x
    LEFT JOIN raw_sys_enter_copy_file_range AS e ON e.seq = x.prev_seq
    UNION ALL
    SELECT x.tid, 7, x.seq, x.ts, x.ret, x.prev_seq, e.seq, e.ts, e.fd
    FROM raw_sys_exit_sendfile64 AS x
    LEFT JOIN raw_sys_enter_sendfile64 AS e ON e.seq = x.prev_seq
  ),
  lost AS (
    SELECT min(l.ts) AS first_ts, max(l.ts) AS last_ts
    FROM raw_lost_events AS l
  ),
  paired AS (
    SELECT
      r.tid, r.call,
      coalesce(r.enter_seq, r.exit_seq) AS seq,
      CASE
        WHEN r.enter_seq IS NOT NULL THEN NULL
        WHEN r.prev_seq IS NULL
          AND (l.first_ts IS NULL OR l.first_ts > r.exit_ts) THEN 'start'
        ELSE 'lost'
      END AS cut,
      coalesce(r.enter_ts, r.exit_ts) AS ts,
      r.exit_ts AS end_ts,
      r.enter_seq IS NULL AS is_alone,
      r.fd, r.ret
    FROM returned AS r
    CROSS JOIN lost AS l
    UNION ALL
    SELECT
      e.tid, e.call, e.seq,
      CASE
        WHEN e.next_ts IS NULL AND (l.last_ts IS NULL OR l.last_ts < e.ts)
          THEN 'end'
        ELSE 'lost'
      END,
      e.ts, e.next_ts, 0, NULL, NULL
    FROM _write_entered AS e
    CROSS JOIN lost AS l
  )
SELECT
  p.seq,
  CASE WHEN p.cut = 'start' THEN b.first_ts ELSE p.ts END AS ts,
  CASE
    WHEN p.cut = 'end' THEN b.last_ts
    -- Nothing tells how long one lasted whose entry is lost.
    WHEN p.cut = 'lost' AND p.is_alone = 1 THEN NULL
    ELSE p.end_ts
  END AS end_ts,
  p.tid,
  CASE p.call
    WHEN 1 THEN 'write'
    WHEN 2 THEN 'pwrite64'
    WHEN 3 THEN 'writev'
    WHEN 4 THEN 'pwritev'
    WHEN 5 THEN 'pwritev2'
    WHEN 6 THEN 'copy_file_range'
    ELSE 'sendfile64'
  END AS what,
  CASE WHEN p.call > 5 THEN 0 WHEN p.cut = 'lost' THEN 1 ELSE 2 END AS is_write,
  p.fd,
  p.ret AS written_bytes,
  p.cut
FROM paired AS p
CROSS JOIN wb_bounds AS b;

-- @view     wb_sync_call
-- @summary  System calls that wait until data are on the disk. A call that was
--   entered before the trace began is left out; one in which its task exits
--   ends there.
-- @grain    call; order ts, tid
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
      s.ts, s.tid, s.call, s.is_entry,
      lead(s.is_entry) OVER task AS next_is_entry,
      lead(s.ts) OVER task AS next_ts
    FROM ends AS s
    WINDOW task AS (PARTITION BY s.tid, s.call ORDER BY s.seq)
  )
SELECT
  p.ts,
  coalesce(p.next_ts, b.last_ts) AS end_ts,
  p.tid, p.call
FROM paired AS p
CROSS JOIN wb_bounds AS b
WHERE p.is_entry = 1 AND coalesce(p.next_is_entry, 0) = 0;

-- @view     _write_entered
-- @summary  Entries of system calls that write, each with its return.
-- @grain    call; order tid, seq
-- @column   tid INTEGER thread
-- @column   call INTEGER 1 to 7: which system call
-- @column   seq INTEGER of its entry
-- @column   ts INTEGER ns, of its entry
-- @column   next_ts INTEGER ns, of its next entry; NULL = nothing of that call
--   follows
CREATE VIEW _write_entered AS
WITH
  -- Per task and call, the last of all entries and returns: twice its seq, and
  -- one more where it is a return.
  ends AS (
    SELECT e.tid, 1 AS call, max(e.seq) * 2 AS step
    FROM raw_sys_enter_write AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 1, max(x.seq) * 2 + 1
    FROM raw_sys_exit_write AS x
    GROUP BY x.tid
    UNION ALL
    SELECT e.tid, 2, max(e.seq) * 2
    FROM raw_sys_enter_pwrite64 AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 2, max(x.seq) * 2 + 1
    FROM raw_sys_exit_pwrite64 AS x
    GROUP BY x.tid
    UNION ALL
    SELECT e.tid, 3, max(e.seq) * 2
    FROM raw_sys_enter_writev AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 3, max(x.seq) * 2 + 1
    FROM raw_sys_exit_writev AS x
    GROUP BY x.tid
    UNION ALL
    SELECT e.tid, 4, max(e.seq) * 2
    FROM raw_sys_enter_pwritev AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 4, max(x.seq) * 2 + 1
    FROM raw_sys_exit_pwritev AS x
    GROUP BY x.tid
    UNION ALL
    SELECT e.tid, 5, max(e.seq) * 2
    FROM raw_sys_enter_pwritev2 AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 5, max(x.seq) * 2 + 1
    FROM raw_sys_exit_pwritev2 AS x
    GROUP BY x.tid
    UNION ALL
    SELECT e.tid, 6, max(e.seq) * 2
    FROM raw_sys_enter_copy_file_range AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 6, max(x.seq) * 2 + 1
    FROM raw_sys_exit_copy_file_range AS x
    GROUP BY x.tid
    UNION ALL
    SELECT e.tid, 7, max(e.seq) * 2
    FROM raw_sys_enter_sendfile64 AS e
    GROUP BY e.tid
    UNION ALL
    SELECT x.tid, 7, max(x.seq) * 2 + 1
    FROM raw_sys_exit_sendfile64 AS x
    GROUP BY x.tid
  ),
  last AS (
    SELECT e.call, max(e.step) AS step
    FROM ends AS e
    GROUP BY e.tid, e.call
  )
-- Entries that no return follows, but another entry, or nothing.
SELECT e.tid, 1 AS call, e.seq, e.ts, n.ts AS next_ts
FROM raw_sys_enter_write AS n
CROSS JOIN raw_sys_enter_write AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 2, e.seq, e.ts, n.ts
FROM raw_sys_enter_pwrite64 AS n
CROSS JOIN raw_sys_enter_pwrite64 AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 3, e.seq, e.ts, n.ts
FROM raw_sys_enter_writev AS n
CROSS JOIN raw_sys_enter_writev AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 4, e.seq, e.ts, n.ts
FROM raw_sys_enter_pwritev AS n
CROSS JOIN raw_sys_enter_pwritev AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 5, e.seq, e.ts, n.ts
FROM raw_sys_enter_pwritev2 AS n
CROSS JOIN raw_sys_enter_pwritev2 AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 6, e.seq, e.ts, n.ts
FROM raw_sys_enter_copy_file_range AS n
CROSS JOIN raw_sys_enter_copy_file_range AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 7, e.seq, e.ts, n.ts
FROM raw_sys_enter_sendfile64 AS n
CROSS JOIN raw_sys_enter_sendfile64 AS e ON e.seq = n.prev_seq
UNION ALL
SELECT e.tid, 1, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_write AS e ON e.seq = l.step / 2
WHERE l.call = 1 AND l.step % 2 = 0
UNION ALL
SELECT e.tid, 2, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_pwrite64 AS e ON e.seq = l.step / 2
WHERE l.call = 2 AND l.step % 2 = 0
UNION ALL
SELECT e.tid, 3, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_writev AS e ON e.seq = l.step / 2
WHERE l.call = 3 AND l.step % 2 = 0
UNION ALL
SELECT e.tid, 4, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_pwritev AS e ON e.seq = l.step / 2
WHERE l.call = 4 AND l.step % 2 = 0
UNION ALL
SELECT e.tid, 5, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_pwritev2 AS e ON e.seq = l.step / 2
WHERE l.call = 5 AND l.step % 2 = 0
UNION ALL
SELECT e.tid, 6, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_copy_file_range AS e ON e.seq = l.step / 2
WHERE l.call = 6 AND l.step % 2 = 0
UNION ALL
SELECT e.tid, 7, e.seq, e.ts, NULL
FROM last AS l
CROSS JOIN raw_sys_enter_sendfile64 AS e ON e.seq = l.step / 2
WHERE l.call = 7 AND l.step % 2 = 0;
