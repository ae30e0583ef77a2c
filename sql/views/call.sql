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

-- @view     wb_wait_pair
-- @summary  Spans of a task that have an event at either end: reclaim, system
--   calls, fsync in the file system, sleeps for log space, and the waits for
--   the flusher of February 2011.
-- @grain    span; order seq
-- @needs    raw_mm_vmscan_direct_reclaim_begin,
--   raw_mm_vmscan_direct_reclaim_end, raw_mm_vmscan_memcg_reclaim_begin,
--   raw_mm_vmscan_memcg_reclaim_end,
--   raw_mm_vmscan_memcg_softlimit_reclaim_begin,
--   raw_mm_vmscan_memcg_softlimit_reclaim_end,
--   raw_mm_vmscan_node_reclaim_begin, raw_mm_vmscan_node_reclaim_end,
--   raw_writeback_balance_dirty_pages_waiting,
--   raw_writeback_balance_dirty_pages_woken, raw_xfs_log_grant_sleep,
--   raw_xfs_log_grant_wake, raw_ext4_sync_file_enter, raw_ext4_sync_file_exit,
--   raw_sys_enter_fsync, raw_sys_exit_fsync, raw_sys_enter_fdatasync,
--   raw_sys_exit_fdatasync, raw_sys_enter_sync, raw_sys_exit_sync,
--   raw_sys_enter_syncfs, raw_sys_exit_syncfs, raw_sys_enter_sync_file_range,
--   raw_sys_exit_sync_file_range, raw_sys_enter_msync, raw_sys_exit_msync,
--   raw_sys_enter_write, raw_sys_exit_write, raw_sys_enter_pwrite64,
--   raw_sys_exit_pwrite64, raw_sys_enter_writev, raw_sys_exit_writev,
--   raw_sys_enter_pwritev, raw_sys_exit_pwritev, raw_sys_enter_pwritev2,
--   raw_sys_exit_pwritev2, raw_lost_events, wb_bounds
-- @optional vmscan:mm_vmscan_direct_reclaim_begin,
--   vmscan:mm_vmscan_memcg_reclaim_begin,
--   vmscan:mm_vmscan_memcg_softlimit_reclaim_begin,
--   vmscan:mm_vmscan_node_reclaim_begin,
--   writeback:writeback_balance_dirty_pages_waiting, xfs:xfs_log_grant_sleep,
--   ext4:ext4_sync_file_enter, syscalls:sys_enter_fsync,
--   syscalls:sys_enter_fdatasync, syscalls:sys_enter_sync,
--   syscalls:sys_enter_syncfs, syscalls:sys_enter_sync_file_range,
--   syscalls:sys_enter_msync, syscalls:sys_enter_write,
--   syscalls:sys_enter_pwrite64, syscalls:sys_enter_writev,
--   syscalls:sys_enter_pwritev, syscalls:sys_enter_pwritev2
-- @column   seq INTEGER of the event that begins it, or ends it where no
--   beginning was recorded
-- @column   ts INTEGER ns, start
-- @column   end_ts INTEGER ns, end; for cut = lost until when it can have
--   lasted at most, NULL where that is not known
-- @column   tid INTEGER thread
-- @column   what TEXT name of the call or of the pair of events
-- @column   device TEXT major:minor or name of the bdi, where the events tell
-- @column   cut TEXT start or end: it was under way when the trace began or
--   ended; lost: the event at one end is missing; NULL = whole
-- @source   include/trace/events/vmscan.h, ext4.h; fs/xfs/xfs_trace.h;
--   kernel/trace/trace_syscalls.c; patch of 2011-02-04
-- @materialize
CREATE VIEW wb_wait_pair AS
WITH
  steps AS (
    SELECT
      e.tid,
      e.seq,
      e.ts,
      'direct_reclaim' AS what,
      0 AS is_end,
      NULL AS device
    FROM raw_mm_vmscan_direct_reclaim_begin AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'direct_reclaim', 1, NULL
    FROM raw_mm_vmscan_direct_reclaim_end AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'memcg_reclaim', 0, NULL
    FROM raw_mm_vmscan_memcg_reclaim_begin AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'memcg_reclaim', 1, NULL
    FROM raw_mm_vmscan_memcg_reclaim_end AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'memcg_softlimit_reclaim', 0, NULL
    FROM raw_mm_vmscan_memcg_softlimit_reclaim_begin AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'memcg_softlimit_reclaim', 1, NULL
    FROM raw_mm_vmscan_memcg_softlimit_reclaim_end AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'node_reclaim', 0, NULL
    FROM raw_mm_vmscan_node_reclaim_begin AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'node_reclaim', 1, NULL
    FROM raw_mm_vmscan_node_reclaim_end AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'balance_dirty_pages_waiting', 0, e.bdi
    FROM raw_writeback_balance_dirty_pages_waiting AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'balance_dirty_pages_waiting', 1, e.bdi
    FROM raw_writeback_balance_dirty_pages_woken AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'xfs_log_grant', 0,
      e.dev_major || ':' || e.dev_minor
    FROM raw_xfs_log_grant_sleep AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'xfs_log_grant', 1,
      e.dev_major || ':' || e.dev_minor
    FROM raw_xfs_log_grant_wake AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'ext4_sync_file', 0,
      e.dev_major || ':' || e.dev_minor
    FROM raw_ext4_sync_file_enter AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'ext4_sync_file', 1,
      e.dev_major || ':' || e.dev_minor
    FROM raw_ext4_sync_file_exit AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'fsync', 0, NULL
    FROM raw_sys_enter_fsync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'fsync', 1, NULL
    FROM raw_sys_exit_fsync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'fdatasync', 0, NULL
    FROM raw_sys_enter_fdatasync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'fdatasync', 1, NULL
    FROM raw_sys_exit_fdatasync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync', 0, NULL
    FROM raw_sys_enter_sync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync', 1, NULL
    FROM raw_sys_exit_sync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'syncfs', 0, NULL
    FROM raw_sys_enter_syncfs AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'syncfs', 1, NULL
    FROM raw_sys_exit_syncfs AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync_file_range', 0, NULL
    FROM raw_sys_enter_sync_file_range AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'sync_file_range', 1, NULL
    FROM raw_sys_exit_sync_file_range AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'msync', 0, NULL
    FROM raw_sys_enter_msync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'msync', 1, NULL
    FROM raw_sys_exit_msync AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'write', 0, NULL
    FROM raw_sys_enter_write AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'write', 1, NULL
    FROM raw_sys_exit_write AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'pwrite64', 0, NULL
    FROM raw_sys_enter_pwrite64 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'pwrite64', 1, NULL
    FROM raw_sys_exit_pwrite64 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'writev', 0, NULL
    FROM raw_sys_enter_writev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'writev', 1, NULL
    FROM raw_sys_exit_writev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'pwritev', 0, NULL
    FROM raw_sys_enter_pwritev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'pwritev', 1, NULL
    FROM raw_sys_exit_pwritev AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'pwritev2', 0, NULL
    FROM raw_sys_enter_pwritev2 AS e
    UNION ALL
    SELECT e.tid, e.seq, e.ts, 'pwritev2', 1, NULL
    FROM raw_sys_exit_pwritev2 AS e
  ),
  -- Spans of one kind never nest within a task.
  paired AS (
    SELECT
      s.*,
      lead(s.ts) OVER task AS next_ts,
      lead(s.is_end) OVER task AS next_is_end,
      lag(s.is_end) OVER task AS prev_is_end
    FROM steps AS s
    WINDOW task AS (PARTITION BY s.tid, s.what ORDER BY s.seq)
  ),
  lost AS (
    SELECT min(l.ts) AS first_ts, max(l.ts) AS last_ts
    FROM raw_lost_events AS l
  )
SELECT
  p.seq,
  CASE
    WHEN p.is_end = 1 AND p.prev_is_end IS NULL
      AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN b.first_ts
    ELSE p.ts
  END AS ts,
  CASE
    WHEN p.is_end = 0 AND p.next_ts IS NOT NULL THEN p.next_ts
    WHEN p.is_end = 0 AND (l.last_ts IS NULL OR l.last_ts < p.ts)
      THEN b.last_ts
    WHEN p.is_end = 1 AND p.prev_is_end IS NULL
      AND (l.first_ts IS NULL OR l.first_ts > p.ts) THEN p.ts
  END AS end_ts,
  p.tid,
  p.what,
  p.device,
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
WHERE p.is_end = 0 OR p.prev_is_end IS NULL OR p.prev_is_end = 1;
