-- SPDX-License-Identifier: Apache-2.0
-- Calls of tasks that write, that wait until data is on the disk, that hold
-- tasks up, or that ask a server.

-- @view     wb_call
-- @summary  System calls that write, copies inside the kernel, and calls that
--   wait until data is on the disk, with what file systems do in them; calls of
--   balance_dirty_pages() by two probes, also of those in free run, which fire
--   no event, and its waits for the flusher in the patches of February 2011;
--   requests to the servers of NFS and FUSE: each from its entry to its return.
-- @grain    call, or the event at one end of it; order tid, seq
-- @optional syscalls:sys_exit_write, syscalls:sys_enter_write,
--   syscalls:sys_enter_fsync, syscalls:sys_exit_fsync,
--   syscalls:sys_enter_sync, syscalls:sys_exit_sync,
--   ext4:ext4_sync_file_enter, nfs:nfs_fsync_enter,
--   nfs:nfs_writeback_inode_enter, sched:sched_process_exit,
--   wbscope:balance_dirty_pages_entry, wbscope:balance_dirty_pages_return,
--   writeback:writeback_balance_dirty_pages_waiting, nfs:nfs_initiate_write,
--   nfs:nfs_initiate_commit, fuse:fuse_request_send
-- @column   seq INTEGER of the event that begins it, or ends it where no
--   beginning was recorded
-- @column   ts INTEGER ns, when it was entered; when it returned, where the
--   entry was not recorded
-- @column   end_ts INTEGER ns, when it returned, its task exited or the trace
--   ended; for cut = lost until when it can have lasted at most, NULL where
--   that is not known
-- @column   tid INTEGER thread
-- @column   call TEXT its name: write, fsync, ext4_sync_file,
--   balance_dirty_pages, balance_dirty_pages_waiting; of a request what it
--   asks for: WRITE, COMMIT, of FUSE all others, too
-- @column   is_write INTEGER 0: a copy inside the kernel; 1: a write of which
--   an end is lost; 2: any other write; NULL = none of these
-- @column   is_sync INTEGER 1: a system call that waits until data is on the
--   disk; 0: what a file system does in one, or at close(); NULL = none of
--   these
-- @column   fd INTEGER descriptor of a write; NULL when the entry was not
--   recorded
-- @column   written_bytes INTEGER result of a write; NULL = its return was not
--   recorded, or it does not write
-- @column   errno INTEGER error that a call returned which waits; 0 = none;
--   NULL = its return was not recorded, or does not tell
-- @column   device TEXT major:minor or name of the bdi, where the file system's
--   events tell; of a call in free run that of another call with the same
--   bdi_writeback; NULL = none was throttled
-- @column   cut TEXT start or end: it was under way when the trace began or
--   ended; exit: the task exited in it; lost: the event at one end is missing;
--   NULL = whole; not told of balance_dirty_pages and requests
-- @column   end_seq INTEGER of balance_dirty_pages and requests: of the return
--   or answer; NULL = not in the trace
-- @column   cgroup_ino INTEGER of balance_dirty_pages: cgroup that owns the wb;
--   1 = root
-- @column   events_count INTEGER of it: balance_dirty_pages events of the call;
--   0 = it was in free run
-- @column   is_paused INTEGER of it 1: one of them has a pause above 0
-- @column   is_async INTEGER of it 1: it returned -EAGAIN in place of the last
--   pause (io_uring NOWAIT)
-- @column   dirtied_bytes INTEGER of it: what the task dirtied since its last
--   call: pages minus those that the last call left uncounted
-- @column   protocol TEXT of a request: nfs or fuse
-- @column   bytes INTEGER of a request the data of a WRITE, of a wait of 2011
--   the pages that it wants to see written
-- @column   error INTEGER of a request 0, or a negative errno; NULL = no answer
-- @column   answer_tid INTEGER of a request: thread in which the answer came
-- @index    tid is_write seq
-- @source   kernel/trace/trace_syscalls.c; fs/ext4/fsync.c; fs/nfs/write.c;
--   mm/page-writeback.c balance_dirty_pages()
-- @materialize
CREATE VIEW wb_call AS
WITH
  -- Calls never nest within a task: before a return is its entry, or that is
  -- lost.
  -- What returned; without an entry where that is lost, or before the trace.
  returned AS (
    SELECT r.* FROM returned!(raw_sys_exit_write, raw_sys_enter_write, 1) AS r
    UNION ALL
    SELECT r.*
    FROM returned!(raw_sys_exit_pwrite64, raw_sys_enter_pwrite64, 2) AS r
    UNION ALL
    SELECT r.* FROM returned!(raw_sys_exit_writev, raw_sys_enter_writev, 3) AS r
    UNION ALL
    SELECT r.*
    FROM returned!(raw_sys_exit_pwritev, raw_sys_enter_pwritev, 4) AS r
    UNION ALL
    SELECT r.*
    FROM returned!(raw_sys_exit_pwritev2, raw_sys_enter_pwritev2, 5) AS r
    UNION ALL
    SELECT r.*
    FROM returned!(
      raw_sys_exit_copy_file_range, raw_sys_enter_copy_file_range, 6
    ) AS r
    UNION ALL
    SELECT r.*
    FROM returned!(raw_sys_exit_sendfile64, raw_sys_enter_sendfile64, 7) AS r
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
  w.cut,
  NULL AS end_seq,
  NULL AS cgroup_ino,
  NULL AS events_count,
  NULL AS is_paused,
  NULL AS is_async,
  NULL AS dirtied_bytes,
  NULL AS protocol,
  NULL AS bytes,
  NULL AS error,
  NULL AS answer_tid
FROM written AS w
CROSS JOIN wb_units AS b
UNION ALL
SELECT
  s.seq, s.ts,
  CASE s.is_open WHEN 1 THEN b.last_ts ELSE s.end_ts END,
  s.tid, s.call, NULL, s.is_sync, NULL, NULL, s.errno,
  coalesce(n.bdi, s.device),
  s.cut, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM _sync_call AS s
CROSS JOIN wb_units AS b
-- ext4 names a partition.
LEFT JOIN wb_device AS n
  ON instr(n.partitions, ' ' || s.device || ' ') > 0
UNION ALL
SELECT
  p.seq, p.ts, p.end_ts, p.tid, 'balance_dirty_pages', NULL, NULL, NULL, NULL,
  NULL, p.bdi, NULL, p.end_seq, p.cgroup_ino, p.events_count, p.is_paused,
  CASE WHEN u.version >= 6000 THEN p.is_again ELSE 0 END,
  CASE WHEN u.version >= 6000 THEN p.dirtied_pages ELSE p.old_dirtied_pages END
    * u.page_bytes,
  NULL, NULL, NULL, NULL
FROM _probe_call AS p
CROSS JOIN wb_units AS u
UNION ALL
SELECT
  w.seq, w.ts,
  CASE w.cut WHEN 'end' THEN u.last_ts ELSE w.end_ts END,
  w.tid, 'balance_dirty_pages_waiting', NULL, NULL, NULL, NULL, NULL, w.bdi,
  w.cut, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  w.asked_pages * u.page_bytes,
  NULL, NULL
FROM _completion_wait AS w
CROSS JOIN wb_units AS u
UNION ALL
SELECT
  r.seq, r.ts, r.end_ts, r.tid, r.op, NULL, NULL, NULL, NULL, NULL, r.device,
  NULL, r.end_seq, NULL, NULL, NULL, NULL, NULL, r.protocol, r.bytes, r.error,
  r.answer_tid
FROM _server_request AS r;

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
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(raw_sys_enter_write, raw_sys_exit_write, 1) AS e
UNION ALL
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(raw_sys_enter_pwrite64, raw_sys_exit_pwrite64, 2) AS e
UNION ALL
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(raw_sys_enter_writev, raw_sys_exit_writev, 3) AS e
UNION ALL
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(raw_sys_enter_pwritev, raw_sys_exit_pwritev, 4) AS e
UNION ALL
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(raw_sys_enter_pwritev2, raw_sys_exit_pwritev2, 5) AS e
UNION ALL
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(
  raw_sys_enter_copy_file_range, raw_sys_exit_copy_file_range, 6
) AS e
UNION ALL
SELECT e.tid, e.call, e.seq, e.ts, e.next_ts
FROM entered!(raw_sys_enter_sendfile64, raw_sys_exit_sendfile64, 7) AS e;

-- @view     _sync_call
-- @summary  Calls that wait until data is on the disk: system calls, and what
--   file systems do in them. Calls of one kind never nest within a task. One in
--   which its task exits ends there.
-- @grain    call, or the event at one end of it; order tid, seq
-- @column   seq INTEGER as in wb_call
-- @column   ts INTEGER as in wb_call
-- @column   end_ts INTEGER as in wb_call; NULL where nothing follows, too
-- @column   is_open INTEGER 1: nothing follows
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
    SELECT s.*, 1 AS is_sync, NULL AS device
    FROM sync_call!(raw_sys_enter_fsync, raw_sys_exit_fsync, 'fsync') AS s
    UNION ALL
    SELECT s.*, 1, NULL
    FROM sync_call!(
      raw_sys_enter_fdatasync, raw_sys_exit_fdatasync, 'fdatasync'
    ) AS s
    UNION ALL
    SELECT s.*, 1, NULL
    FROM sync_call!(raw_sys_enter_sync, raw_sys_exit_sync, 'sync') AS s
    UNION ALL
    SELECT s.*, 1, NULL
    FROM sync_call!(raw_sys_enter_syncfs, raw_sys_exit_syncfs, 'syncfs') AS s
    UNION ALL
    SELECT s.*, 1, NULL
    FROM sync_call!(
      raw_sys_enter_sync_file_range,
      raw_sys_exit_sync_file_range,
      'sync_file_range'
    ) AS s
    UNION ALL
    SELECT s.*, 1, NULL
    FROM sync_call!(raw_sys_enter_msync, raw_sys_exit_msync, 'msync') AS s
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'ext4_sync_file', 1, NULL, 0, device!(e)
    FROM raw_ext4_sync_file_enter AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'ext4_sync_file', 0, x.ret, 0, device!(x)
    FROM raw_ext4_sync_file_exit AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'nfs_fsync', 1, NULL, 0, device!(e)
    FROM raw_nfs_fsync_enter AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'nfs_fsync', 0, NULL, 0, device!(x)
    FROM raw_nfs_fsync_exit AS x
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'nfs_wb_all', 1, NULL, 0, device!(e)
    FROM raw_nfs_writeback_inode_enter AS e
    UNION ALL
    SELECT x.tid, x.seq, x.ts, 'nfs_wb_all', 0, NULL, 0, device!(x)
    FROM raw_nfs_writeback_inode_exit AS x
  ),
  ends AS (
    SELECT s.*, 0 AS is_exit
    FROM steps AS s
    UNION ALL
    SELECT x.tid, x.seq, x.ts, c.call, 0, NULL, c.is_sync, NULL, 1
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
    ELSE p.next_ts
  END AS end_ts,
  p.is_entry = 1 AND p.next_ts IS NULL AS is_open,
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
CROSS JOIN lost AS l
WHERE p.is_exit = 0
  AND (p.is_entry = 1 OR p.prev_is_entry IS NULL OR p.prev_is_entry = 0);

-- @view     _probe_call
-- @summary  Calls of balance_dirty_pages() by the probes on its entry and
--   return: exact bytes and time, also of calls in free run, which fire no
--   event. Empty where the probes were not recorded.
-- @grain    call; order seq
-- @column   seq INTEGER of the entry
-- @column   ts INTEGER ns, trace clock, of the entry
-- @column   end_seq INTEGER of the return; NULL = not in the trace
-- @column   end_ts INTEGER ns, of the return
-- @column   tid INTEGER thread
-- @column   bdi TEXT backing device; of a call in free run that of another call
--   with the same bdi_writeback; NULL = none was throttled
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   events_count INTEGER balance_dirty_pages events of the call; 0 = it
--   was in free run
-- @column   is_paused INTEGER 1: one of them has a pause above 0
-- @column   is_again INTEGER 1: it returned -EAGAIN in place of the last pause
--   (io_uring NOWAIT); up to 5.19 it returns nothing
-- @column   dirtied_pages INTEGER what the task dirtied since its last call:
--   pages minus those that the last call left uncounted
-- @column   old_dirtied_pages INTEGER the same where is_again tells nothing
-- @source   mm/page-writeback.c balance_dirty_pages(): nr_dirtied is set to 0
--   in free run, after a pause and when virtual time is moved on or reset
CREATE VIEW _probe_call AS
WITH
  steps AS (
    SELECT
      e.tid, e.seq, e.ts,
      e.seq AS entry_seq,
      NULL AS return_seq,
      e.wb, e.pages,
      NULL AS ret,
      NULL AS bdi,
      NULL AS cgroup_ino,
      NULL AS pause,
      NULL AS is_reset
    FROM raw_balance_dirty_pages_entry AS e
    UNION ALL
    SELECT r.tid, r.seq, r.ts, NULL, r.seq, NULL, NULL, r.ret, NULL, NULL, NULL,
      NULL
    FROM raw_balance_dirty_pages_return AS r
    UNION ALL
    SELECT
      b.tid, b.seq, b.ts, NULL, NULL, NULL, NULL, NULL, b.bdi, b.cgroup_ino,
      b.pause,
      -- A pause of -HZ jiffies or more is -1000 ms.
      CASE WHEN b.pause > 0 OR b.period > 0 OR b.pause < -1000 THEN 1 ELSE 0 END
    -- Nothing is read where there is none.
    FROM (SELECT 1 FROM raw_balance_dirty_pages_entry LIMIT 1) AS o
    CROSS JOIN raw_balance_dirty_pages AS b
  ),
  -- A step belongs to the last entry before it and, of two returns, the first.
  placed AS (
    SELECT
      s.*,
      max(s.entry_seq) OVER task AS call_seq,
      max(s.return_seq) OVER task_so_far AS last_return_seq
    FROM steps AS s
    WINDOW
      task AS (PARTITION BY s.tid ORDER BY s.seq ROWS UNBOUNDED PRECEDING),
      task_so_far AS (
        PARTITION BY s.tid ORDER BY s.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      )
  ),
  gathered AS (
    SELECT
      p.tid, p.call_seq,
      max(CASE WHEN p.entry_seq IS NOT NULL THEN p.ts END) AS ts,
      max(p.return_seq) AS end_seq,
      max(CASE WHEN p.return_seq IS NOT NULL THEN p.ts END) AS end_ts,
      max(p.wb) AS wb,
      max(p.pages) AS pages,
      max(p.ret) AS ret,
      max(p.bdi) AS bdi,
      max(p.cgroup_ino) AS cgroup_ino,
      count(p.bdi) AS events_count,
      max(CASE WHEN p.pause > 0 THEN 1 ELSE 0 END) AS is_paused,
      max(p.is_reset) AS is_reset,
      max(CASE WHEN p.bdi IS NOT NULL THEN p.seq END) AS last_event_seq
    FROM placed AS p
    WHERE p.call_seq IS NOT NULL
      AND (
        p.entry_seq IS NOT NULL
        OR coalesce(p.last_return_seq < p.call_seq, 1)
      )
    GROUP BY p.tid, p.call_seq
  ),
  -- The same bdi_writeback is the same bdi and cgroup.
  known AS (
    SELECT g.wb, max(g.bdi) AS bdi, max(g.cgroup_ino) AS cgroup_ino
    FROM gathered AS g
    WHERE g.bdi IS NOT NULL AND g.wb <> 0
    GROUP BY g.wb
  ),
  returned AS (
    SELECT
      g.*,
      coalesce(g.bdi, k.bdi) AS its_bdi,
      CASE WHEN g.bdi IS NULL THEN k.cgroup_ino ELSE g.cgroup_ino END
        AS its_cgroup_ino,
      coalesce(g.ret = -11 AND l.pause > 0, 0) AS is_again
    FROM gathered AS g
    LEFT JOIN known AS k ON k.wb = g.wb
    LEFT JOIN raw_balance_dirty_pages AS l ON l.seq = g.last_event_seq
  ),
  carried AS (
    SELECT
      r.*,
      lag(
        CASE
          WHEN r.is_again = 0 AND coalesce(r.is_reset, 1) = 1 THEN 0
          ELSE r.pages
        END, 1, 0
      ) OVER task AS carry_pages,
      lag(CASE WHEN coalesce(r.is_reset, 1) = 1 THEN 0 ELSE r.pages END, 1, 0)
        OVER task AS old_carry_pages
    FROM returned AS r
    WINDOW task AS (PARTITION BY r.tid ORDER BY r.call_seq)
  )
SELECT
  c.call_seq AS seq,
  c.ts, c.end_seq, c.end_ts, c.tid,
  c.its_bdi AS bdi,
  c.its_cgroup_ino AS cgroup_ino,
  c.events_count, c.is_paused, c.is_again,
  -- Lost events can hide that the count was reset, and a new task can have the
  -- tid of an old one.
  CASE
    WHEN c.pages >= c.carry_pages THEN c.pages - c.carry_pages
    ELSE c.pages
  END AS dirtied_pages,
  CASE
    WHEN c.pages >= c.old_carry_pages THEN c.pages - c.old_carry_pages
    ELSE c.pages
  END AS old_dirtied_pages
FROM carried AS c;

-- @view     _completion_wait
-- @summary  Waits for the flusher in balance_dirty_pages() of the patches of
--   February 2011: from waiting to woken of the same task.
-- @grain    wait; order seq
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock, start of the wait
-- @column   end_ts INTEGER ns, when it was woken; NULL = it still waits, or the
--   end is lost: the task waits again
-- @column   tid INTEGER thread that waits
-- @column   bdi TEXT backing device
-- @column   asked_pages INTEGER that it wants to see written
-- @column   cut TEXT as in wb_call
-- @source   patch of 2011-02-04, fs/fs-writeback.c
CREATE VIEW _completion_wait AS
WITH
  steps AS (
    SELECT w.seq, w.ts, w.tid, w.bdi, w.pages, 1 AS is_wait
    FROM raw_writeback_balance_dirty_pages_waiting AS w
    UNION ALL
    SELECT k.seq, k.ts, k.tid, k.bdi, NULL, 0
    FROM raw_writeback_balance_dirty_pages_woken AS k
  ),
  followed AS (
    SELECT
      s.seq, s.ts, s.tid, s.bdi, s.pages, s.is_wait,
      lead(s.is_wait) OVER task AS next_is_wait,
      lead(s.ts) OVER task AS next_ts
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid ORDER BY s.seq)
  )
SELECT
  f.seq, f.ts,
  CASE f.next_is_wait WHEN 0 THEN f.next_ts END AS end_ts,
  f.tid, f.bdi,
  f.pages AS asked_pages,
  CASE f.next_is_wait WHEN 0 THEN NULL WHEN 1 THEN 'lost' ELSE 'end' END AS cut
FROM followed AS f
WHERE f.is_wait = 1;

-- @view     _server_request
-- @summary  Requests that a client of NFS (WRITE and COMMIT), or a FUSE file
--   system, sent to its server, from being sent to the answer. The time in
--   which a request of NFS stands in the client's queue of the transport is
--   part of it. Matched by file and offset, and by FUSE's own number.
-- @grain    request; order seq
-- @column   seq INTEGER of the event that sends it
-- @column   ts INTEGER ns, sent
-- @column   end_seq INTEGER of the answer; NULL = none in the trace
-- @column   end_ts INTEGER ns, answered; NULL = no answer in the trace
-- @column   tid INTEGER thread that sent it, often a kworker
-- @column   protocol TEXT nfs or fuse
-- @column   device TEXT name of the bdi
-- @column   op TEXT WRITE, COMMIT; of FUSE all others, too
-- @column   bytes INTEGER data of a WRITE; NULL = another request
-- @column   error INTEGER 0, or a negative errno; NULL = no answer
-- @column   answer_tid INTEGER thread in which the answer came
-- @source   fs/nfs/write.c; fs/fuse/dev.c; fs/fuse/inode.c fuse_bdi_init();
--   include/uapi/linux/fuse.h
CREATE VIEW _server_request AS
WITH
  step AS (
    SELECT n.*
    FROM nfs_step!(raw_nfs_initiate_write, 'WRITE', e.count, NULL, 0) AS n
    UNION ALL
    SELECT n.*
    FROM nfs_step!(raw_nfs_writeback_done, 'WRITE', NULL, e.error, 1) AS n
    UNION ALL
    SELECT n.*
    FROM nfs_step!(raw_nfs_initiate_commit, 'COMMIT', NULL, NULL, 0) AS n
    UNION ALL
    SELECT n.*
    FROM nfs_step!(raw_nfs_commit_done, 'COMMIT', NULL, e.error, 1) AS n
    UNION ALL
    SELECT
      s.seq, s.ts, s.tid,
      'fuse',
      device!(s)
        || CASE WHEN s.dev_major > 0 THEN '-fuseblk' ELSE '' END,
      CASE s.opcode
        WHEN 1 THEN 'LOOKUP'
        WHEN 2 THEN 'FORGET'
        WHEN 3 THEN 'GETATTR'
        WHEN 4 THEN 'SETATTR'
        WHEN 12 THEN 'RENAME'
        WHEN 14 THEN 'OPEN'
        WHEN 15 THEN 'READ'
        WHEN 16 THEN 'WRITE'
        WHEN 17 THEN 'STATFS'
        WHEN 18 THEN 'RELEASE'
        WHEN 20 THEN 'FSYNC'
        WHEN 21 THEN 'SETXATTR'
        WHEN 22 THEN 'GETXATTR'
        WHEN 25 THEN 'FLUSH'
        WHEN 26 THEN 'INIT'
        WHEN 35 THEN 'CREATE'
        WHEN 36 THEN 'INTERRUPT'
        WHEN 38 THEN 'DESTROY'
        WHEN 42 THEN 'BATCH_FORGET'
        WHEN 43 THEN 'FALLOCATE'
        WHEN 47 THEN 'COPY_FILE_RANGE'
        WHEN 50 THEN 'SYNCFS'
        ELSE 'opcode ' || s.opcode
      END,
      s.req, 0,
      CASE WHEN s.opcode = 16 THEN s.len - 80 END,
      NULL, 0
    FROM raw_fuse_request_send AS s
    UNION ALL
    SELECT
      a.seq, a.ts, a.tid,
      'fuse',
      device!(a)
        || CASE WHEN a.dev_major > 0 THEN '-fuseblk' ELSE '' END,
      NULL, a.req, 0, NULL, a.error, 1
    FROM raw_fuse_request_end AS a
  ),
  known AS (
    SELECT
      e.*,
      min(CASE WHEN e.is_end = 0 THEN e.seq END) OVER same AS first_seq,
      max(CASE WHEN e.is_end = 0 THEN e.key_1 END) OVER device AS top_key
    FROM step AS e
    WINDOW
      same AS (PARTITION BY e.protocol, e.device, e.op, e.key_1, e.key_2),
      device AS (PARTITION BY e.protocol, e.device)
  ),
  -- Several COMMIT of a file can be on their way: the first answer is taken for
  -- the first of them. Linux 6.12 gives a request of FUSE its number after the
  -- event, so it tells 0: numbers are given in the order of the events, and
  -- those of requests sent before the trace are the least.
  counted AS (
    SELECT
      k.*,
      CASE
        WHEN k.op = 'COMMIT' AND k.protocol = 'nfs'
          THEN row_number() OVER (
            PARTITION BY
              k.protocol, k.device, k.op, k.key_1, k.key_2, k.is_end,
              k.first_seq > k.seq
            ORDER BY k.seq
          )
        -- Not where some of them are lost.
        WHEN k.protocol = 'fuse' AND k.top_key = 0
          AND EXISTS (SELECT 1 FROM raw_lost_events)
          THEN -k.seq
        WHEN k.protocol = 'fuse' AND k.top_key = 0 AND k.is_end = 1
          THEN row_number() OVER (
            PARTITION BY k.protocol, k.device, k.is_end ORDER BY k.key_1
          ) - 1
        WHEN k.protocol = 'fuse' AND k.top_key = 0
          THEN row_number() OVER (
            PARTITION BY k.protocol, k.device, k.is_end ORDER BY k.seq
          ) - 1 + max(k.answers_count - k.sent_count, 0)
      END AS key_3
    FROM (
      SELECT
        n.*,
        sum(n.is_end) OVER device AS answers_count,
        sum(1 - n.is_end) OVER device AS sent_count
      FROM known AS n
      WINDOW device AS (PARTITION BY n.protocol, n.device)
    ) AS k
  ),
  paired AS (
    SELECT
      s.*,
      lead(s.is_end) OVER request AS next_is_end,
      lead(s.seq) OVER request AS next_seq,
      lead(s.ts) OVER request AS next_ts,
      lead(s.tid) OVER request AS next_tid,
      lead(s.error) OVER request AS next_error
    FROM counted AS s
    WINDOW request AS (
      PARTITION BY
        s.protocol, s.device,
        -- The answer of FUSE does not say to what.
        CASE WHEN s.protocol = 'nfs' THEN s.op END,
        CASE WHEN s.protocol = 'nfs' OR s.top_key > 0 THEN s.key_1 END,
        s.key_2, s.key_3
      ORDER BY s.seq
    )
  )
SELECT
  p.seq, p.ts,
  CASE WHEN p.next_is_end = 1 THEN p.next_seq END AS end_seq,
  CASE WHEN p.next_is_end = 1 THEN p.next_ts END AS end_ts,
  p.tid, p.protocol, p.device, p.op, p.bytes,
  CASE WHEN p.next_is_end = 1 THEN p.next_error END AS error,
  CASE WHEN p.next_is_end = 1 THEN p.next_tid END AS answer_tid
FROM paired AS p
WHERE p.is_end = 0
  -- It wants no answer.
  AND p.op NOT IN ('FORGET', 'BATCH_FORGET', 'INTERRUPT');
