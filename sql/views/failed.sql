-- SPDX-License-Identifier: Apache-2.0
-- Writes that failed, as far as events tell of an error.

-- @view     wb_failed_write
-- @shared
-- @summary  Writes of which an event tells an error: block requests, writeback
--   of files, and calls that wait until data is on the disk. Errors of calls
--   that were asked for what there is not (EBADF, EINVAL and the like), and of
--   requests that are tried again or not supported, are none.
-- @grain    event with an error; order seq
-- @optional block:block_rq_complete, filemap:filemap_set_wb_err,
--   ext4:ext4_sync_file_exit,
--   syscalls:sys_exit_fsync, syscalls:sys_exit_fdatasync,
--   syscalls:sys_exit_syncfs, syscalls:sys_exit_sync_file_range,
--   syscalls:sys_exit_msync
-- @column   seq INTEGER of the event
-- @column   kind TEXT request, file or call
-- @column   what TEXT kind of request, as the kernel prints it; inode of the
--   file, and its partition; name of the call
-- @column   bdi TEXT major:minor of the device; of a file and a call the file
--   system's, or its disk where that is a partition; where the call does not
--   say, the only one of which files failed; NULL = not told
-- @column   tid INTEGER thread that made the call; NULL for others
-- @column   comm TEXT its name then
-- @column   errno INTEGER number of the error
-- @column   error TEXT its name
-- @column   bytes INTEGER of the request; NULL for others
-- @source   block/blk-mq.c blk_update_request(); fs/sync.c; mm/filemap.c
--   file_check_and_advance_wb_err(); lib/errseq.c: MAX_ERRNO is 4095
-- @materialize
CREATE VIEW wb_failed_write AS
WITH
  -- A disk that somebody unplugged, that is full, or whose medium is bad.
  code AS (
    SELECT 5 AS errno, 'EIO' AS error
    UNION ALL
    SELECT 6, 'ENXIO'
    UNION ALL
    SELECT 19, 'ENODEV'
    UNION ALL
    SELECT 28, 'ENOSPC'
    UNION ALL
    SELECT 30, 'EROFS'
    UNION ALL
    SELECT 52, 'EBADE'
    UNION ALL
    SELECT 61, 'ENODATA'
    UNION ALL
    SELECT 67, 'ENOLINK'
    UNION ALL
    SELECT 84, 'EILSEQ'
    UNION ALL
    SELECT 110, 'ETIMEDOUT'
    UNION ALL
    SELECT 116, 'ESTALE'
    UNION ALL
    SELECT 117, 'EUCLEAN'
    UNION ALL
    SELECT 121, 'EREMOTEIO'
    UNION ALL
    SELECT 122, 'EDQUOT'
  ),
  one_fs AS (
    SELECT
      CASE WHEN min(m.s_dev) = max(m.s_dev) THEN min(m.s_dev) END AS device
    FROM (
      SELECT device!(m) AS s_dev
      FROM raw_filemap_set_wb_err AS m
    ) AS m
  ),
  failed AS (
    SELECT
      c.seq, c.ts,
      'request' AS kind,
      c.rwbs AS what,
      device!(c) AS bdi,
      NULL AS tid,
      -c.error AS errno,
      c.nr_sector * u.sector_bytes AS bytes
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_units AS u
    WHERE c.error < 0
      AND c.op IN ('write', 'flush')
    UNION ALL
    SELECT
      m.seq, m.ts,
      'file',
      'ino ' || m.i_ino,
      device!(m),
      NULL,
      m.errseq & 4095,
      NULL
    FROM raw_filemap_set_wb_err AS m
    UNION ALL
    SELECT
      x.seq, x.ts, 'call', x.what, coalesce(x.device, o.device), x.tid, -x.ret,
      NULL
    FROM _failed_call AS x
    CROSS JOIN one_fs AS o
    WHERE x.is_inside = 0
  )
SELECT
  f.seq, f.ts, f.kind,
  CASE WHEN f.kind = 'file' AND n.bdi IS NOT NULL
    THEN f.what || ' of ' || f.bdi
    ELSE f.what
  END AS what,
  coalesce(n.bdi, f.bdi) AS bdi,
  f.tid,
  CASE WHEN f.tid IS NOT NULL THEN coalesce(t.comm, 'tid ' || f.tid) END
    AS comm,
  f.errno, e.error, f.bytes
FROM failed AS f
JOIN code AS e ON e.errno = f.errno
LEFT JOIN wb_device AS n
  ON instr(n.partitions, ' ' || f.bdi || ' ') > 0
LEFT JOIN wb_task AS t ON task_of!(t, f);

-- @view     wb_failed_sync
-- @shared
-- @summary  When calls that wait until data is on the disk returned an error of
--   writing, that of the file system inside a system call apart.
-- @grain    thread and time; order end_ts, tid
-- @column   end_ts INTEGER ns, when it returned
CREATE VIEW wb_failed_sync AS
SELECT DISTINCT c.tid, c.ts AS end_ts
FROM _failed_call AS c
WHERE -c.ret IN (SELECT w.errno FROM wb_failed_write AS w);

-- @view     _failed_call
-- @summary  Ends of calls that wait until data is on the disk and did not
--   succeed. The file system's fsync, which names the device, may be inside a
--   system call that returns the same.
-- @grain    return of a call; order seq
-- @optional syscalls:sys_exit_fsync, syscalls:sys_exit_fdatasync,
--   syscalls:sys_exit_syncfs, syscalls:sys_exit_sync_file_range,
--   syscalls:sys_exit_msync, ext4:ext4_sync_file_exit
-- @column   seq INTEGER of the event
-- @column   ts INTEGER ns
-- @column   tid INTEGER thread
-- @column   what TEXT name of the call; ext4_sync_file for the file system's
-- @column   ret INTEGER what it returned, less than 0
-- @column   device TEXT major:minor of the file system; NULL = not told
-- @column   is_inside INTEGER 1: the system call around it is told, too
-- @materialize
CREATE VIEW _failed_call AS
WITH
  ends AS (
    SELECT x.seq, x.ts, x.tid, 'fsync' AS what, x.ret, NULL AS device
    FROM raw_sys_exit_fsync AS x
    WHERE x.ret < 0
    UNION ALL
    SELECT x.seq, x.ts, x.tid, 'fdatasync', x.ret, NULL
    FROM raw_sys_exit_fdatasync AS x
    WHERE x.ret < 0
    UNION ALL
    SELECT x.seq, x.ts, x.tid, 'syncfs', x.ret, NULL
    FROM raw_sys_exit_syncfs AS x
    WHERE x.ret < 0
    UNION ALL
    SELECT x.seq, x.ts, x.tid, 'sync_file_range', x.ret, NULL
    FROM raw_sys_exit_sync_file_range AS x
    WHERE x.ret < 0
    UNION ALL
    SELECT x.seq, x.ts, x.tid, 'msync', x.ret, NULL
    FROM raw_sys_exit_msync AS x
    WHERE x.ret < 0
    UNION ALL
    SELECT
      x.seq, x.ts, x.tid, 'ext4_sync_file', x.ret,
      device!(x)
    FROM raw_ext4_sync_file_exit AS x
    WHERE x.ret < 0
  ),
  followed AS (
    SELECT
      e.*,
      lag(e.device) OVER task AS last_device,
      lag(e.ret) OVER task AS last_ret,
      lag(e.ts) OVER task AS last_ts,
      lead(e.device) OVER task AS next_device,
      lead(e.ret) OVER task AS next_ret,
      lead(e.ts) OVER task AS next_ts
    FROM ends AS e
    WINDOW task AS (PARTITION BY e.tid ORDER BY e.seq)
  )
SELECT
  f.seq, f.ts, f.tid, f.what, f.ret,
  CASE
    WHEN f.device IS NULL AND f.last_ret = f.ret
      AND f.ts - f.last_ts <= v.run_slack_ns
      THEN f.last_device
    ELSE f.device
  END AS device,
  coalesce(
    f.device IS NOT NULL AND f.next_device IS NULL AND f.next_ret = f.ret
    AND f.next_ts - f.ts <= v.run_slack_ns, 0
  ) AS is_inside
FROM followed AS f
CROSS JOIN wb_rule AS v;
