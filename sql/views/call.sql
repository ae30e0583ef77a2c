-- SPDX-License-Identifier: Apache-2.0
-- System calls of tasks that write, or wait until data is on the disk.

-- @view     wb_call
-- @summary  System calls that write, copies inside the kernel, and calls that
--   wait until data is on the disk, with what file systems do in them: each
--   from its entry to its return.
-- @grain    call, or the event at one end of it; order tid, seq
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write,
--   syscalls:sys_enter_fsync, syscalls:sys_exit_fsync,
--   syscalls:sys_enter_sync, syscalls:sys_exit_sync,
--   ext4:ext4_sync_file_enter, nfs:nfs_fsync_enter,
--   nfs:nfs_writeback_inode_enter, sched:sched_process_exit
-- @column   seq INTEGER of the event that begins it, or ends it where no
--   beginning was recorded
-- @column   ts INTEGER ns, when it was entered; when it returned, where the
--   entry was not recorded
-- @column   end_ts INTEGER ns, when it returned, its task exited or the trace
--   ended; for cut = lost until when it can have lasted at most, NULL where
--   that is not known
-- @column   tid INTEGER thread
-- @column   call TEXT its name: write, fsync, ext4_sync_file ...
-- @column   is_write INTEGER 0: a copy inside the kernel; 1: a write of which
--   an end is lost; 2: any other write; NULL = it waits for the disk
-- @column   is_sync INTEGER 1: a system call that waits until data is on the
--   disk; 0: what a file system does in one, or at close(); NULL = it writes
-- @column   fd INTEGER descriptor of a write; NULL when the entry was not
--   recorded
-- @column   written_bytes INTEGER result of a write; NULL = its return was not
--   recorded, or it does not write
-- @column   errno INTEGER error that a call returned which waits; 0 = none;
--   NULL = its return was not recorded, or does not tell
-- @column   device TEXT major:minor or name of the bdi, where the file system's
--   events tell
-- @column   cut TEXT start or end: it was under way when the trace began or
--   ended; exit: the task exited in it; lost: the event at one end is missing;
--   NULL = whole
-- @index    tid is_write seq
-- @source   kernel/trace/trace_syscalls.c; fs/ext4/fsync.c; fs/nfs/write.c
-- @materialize
CREATE VIEW wb_call AS
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
  written AS (
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
      e.ts, e.next_ts, NULL, NULL
    FROM _write_entered AS e
    CROSS JOIN lost AS l
  )
SELECT
  w.seq, w.ts,
  CASE WHEN w.cut = 'end' THEN b.last_ts ELSE w.end_ts END AS end_ts,
  w.tid,
  CASE w.call
    WHEN 1 THEN 'write'
    WHEN 2 THEN 'pwrite64'
    WHEN 3 THEN 'writev'
    WHEN 4 THEN 'pwritev'
    WHEN 5 THEN 'pwritev2'
    WHEN 6 THEN 'copy_file_range'
    ELSE 'sendfile64'
  END AS call,
  CASE WHEN w.call > 5 THEN 0 WHEN w.cut = 'lost' THEN 1 ELSE 2 END AS is_write,
  NULL AS is_sync,
  w.fd,
  w.ret AS written_bytes,
  NULL AS errno,
  NULL AS device,
  w.cut
FROM written AS w
CROSS JOIN wb_bounds AS b
UNION ALL
SELECT
  s.seq, s.ts, s.end_ts, s.tid, s.call, NULL, s.is_sync, NULL, NULL, s.errno,
  coalesce(n.bdi, s.device),
  s.cut
FROM _sync_call AS s
-- ext4 names a partition.
LEFT JOIN wb_device AS n
  ON instr(n.partitions, ' ' || s.device || ' ') > 0;

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

-- @view     _sync_call
-- @summary  Calls that wait until data is on the disk: system calls, and what
--   file systems do in them. Calls of one kind never nest within a task. One in
--   which its task exits ends there.
-- @grain    call, or the event at one end of it; order tid, seq
-- @column   seq INTEGER as in wb_call
-- @column   ts INTEGER as in wb_call
-- @column   end_ts INTEGER as in wb_call
-- @column   tid INTEGER thread
-- @column   call TEXT as in wb_call
-- @column   is_sync INTEGER as in wb_call
-- @column   errno INTEGER as in wb_call
-- @column   device TEXT major:minor that the events name, also of a partition
-- @column   cut TEXT as in wb_call
-- @source   include/trace/events/ext4.h; fs/nfs/nfstrace.h; fs/nfs/write.c
--   nfs_wb_all()
CREATE VIEW _sync_call AS
WITH
  steps AS (
    SELECT
      e.tid, e.seq, e.ts, 'fsync' AS call, 1 AS is_entry, 1 AS is_sync,
      NULL AS ret, NULL AS device
    FROM raw_sys_enter_fsync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'fsync', 0, 1, x.ret, NULL
    FROM raw_sys_exit_fsync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'fdatasync', 1, 1, NULL, NULL
    FROM raw_sys_enter_fdatasync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'fdatasync', 0, 1, x.ret, NULL
    FROM raw_sys_exit_fdatasync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync', 1, 1, NULL, NULL
    FROM raw_sys_enter_sync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'sync', 0, 1, x.ret, NULL
    FROM raw_sys_exit_sync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'syncfs', 1, 1, NULL, NULL
    FROM raw_sys_enter_syncfs AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'syncfs', 0, 1, x.ret, NULL
    FROM raw_sys_exit_syncfs AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync_file_range', 1, 1, NULL, NULL
    FROM raw_sys_enter_sync_file_range AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'sync_file_range', 0, 1, x.ret, NULL
    FROM raw_sys_exit_sync_file_range AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'msync', 1, 1, NULL, NULL
    FROM raw_sys_enter_msync AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'msync', 0, 1, x.ret, NULL
    FROM raw_sys_exit_msync AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'ext4_sync_file', 1, 0, NULL, device!(e)
    FROM raw_ext4_sync_file_enter AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'ext4_sync_file', 0, 0, x.ret, device!(x)
    FROM raw_ext4_sync_file_exit AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'nfs_fsync', 1, 0, NULL, device!(e)
    FROM raw_nfs_fsync_enter AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'nfs_fsync', 0, 0, NULL, device!(x)
    FROM raw_nfs_fsync_exit AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'nfs_wb_all', 1, 0, NULL, device!(e)
    FROM raw_nfs_writeback_inode_enter AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'nfs_wb_all', 0, 0, NULL, device!(x)
    FROM raw_nfs_writeback_inode_exit AS x
  ),
  ends AS (
    SELECT s.*, 0 AS is_exit
    FROM steps AS s
    UNION ALL
    SELECT x.tid, x.seq, x.ts, c.call, 0, c.is_sync, NULL, NULL, 1
    FROM raw_sched_process_exit AS x
    JOIN (SELECT DISTINCT s.tid, s.call, s.is_sync FROM steps AS s) AS c
      ON c.tid = x.tid
  ),
  paired AS (
    SELECT
      s.*,
      lead(s.ts) OVER task AS next_ts,
      lead(s.is_entry) OVER task AS next_is_entry,
      lead(s.is_exit) OVER task AS next_is_exit,
      lead(s.ret) OVER task AS next_ret,
      lag(s.is_entry) OVER task AS prev_is_entry
    FROM ends AS s
    WINDOW task AS (PARTITION BY s.tid, s.call ORDER BY s.seq)
  ),
  lost AS (
    SELECT min(l.ts) AS first_ts, max(l.ts) AS last_ts
    FROM raw_lost_events AS l
  )
SELECT
  p.seq, p.ts,
  CASE
    WHEN p.is_entry = 0 THEN p.ts
    WHEN p.next_is_entry = 1 THEN NULL
    ELSE coalesce(p.next_ts, b.last_ts)
  END AS end_ts,
  p.tid, p.call, p.is_sync,
  max(-CASE p.is_entry WHEN 0 THEN p.ret ELSE p.next_ret END, 0) AS errno,
  p.device,
  CASE
    WHEN p.is_entry = 0 AND p.prev_is_entry IS NULL
      AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN 'start'
    WHEN p.is_entry = 1 AND p.next_is_entry = 0 AND p.next_is_exit = 0 THEN NULL
    WHEN p.is_entry = 0 OR p.next_is_entry = 1 OR l.last_ts >= p.ts THEN 'lost'
    WHEN p.next_is_exit = 1 THEN 'exit'
    ELSE 'end'
  END AS cut
FROM paired AS p
CROSS JOIN wb_bounds AS b
CROSS JOIN lost AS l
WHERE p.is_exit = 0
  AND (p.is_entry = 1 OR p.prev_is_entry IS NULL OR p.prev_is_entry = 0);
