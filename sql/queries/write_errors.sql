-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    write_errors
-- @title    Writes that failed
-- @summary  Errors of block requests that write, of writeback of files, and of
--   calls that wait until data is on the disk.
-- @read     A page whose writeback fails counts as written, is clean afterwards
--   and is not written again: who calls fsync next is told once, nobody else.
--   Failed requests may have been tried again above the disk (multipath, RAID).
--   Devices that are made of bios (device mapper, md) have no requests of their
--   own: there only the files and the calls tell.
-- @filters  range, bdi, tid, task
-- @grain    device, kind, what, task under a name, error; order first_ts
-- @keys     bdi, kind, what, tid, comm, error
-- @events   block:block_rq_complete|filemap:filemap_set_wb_err
--   |syscalls:sys_exit_fsync
--   |syscalls:sys_exit_fdatasync|syscalls:sys_exit_syncfs
--   |syscalls:sys_exit_sync_file_range|syscalls:sys_exit_msync
--   |ext4:ext4_sync_file_exit
-- @column   bdi TEXT device; NULL = not told
-- @column   kind TEXT request, file (its writeback) or call
-- @column   error TEXT name of the error
-- @column   count INTEGER how many
-- @column   bytes INTEGER of the requests; NULL for others
-- @column   first_ts INTEGER ns, trace clock
-- @column   last_ts INTEGER ns
-- @column   after_ns INTEGER from the trace's start to the first
SELECT
  w.bdi, w.kind, w.what, w.tid, w.comm, w.error,
  count(*) AS count,
  sum(w.bytes) AS bytes,
  min(w.ts) AS first_ts,
  max(w.ts) AS last_ts,
  min(w.ts) - min(b.first_ts) AS after_ns
FROM _failed_write AS w
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(w.ts, b)
  AND of_task!(w, p)
  AND (p.bdi IS NULL OR w.bdi = p.bdi)
GROUP BY w.bdi, w.kind, w.what, w.tid, w.comm, w.error
ORDER BY first_ts, w.bdi, w.kind, w.what, w.tid, w.comm, w.error;

-- @view     _failed_write
-- @summary  Writes of which an event tells an error: block requests, writeback
--   of files, and calls that wait until data is on the disk. Errors of calls
--   that were asked for what there is not (EBADF, EINVAL and the like), and of
--   requests that are tried again or not supported, are none.
-- @grain    event with an error; order seq
-- @column   seq INTEGER of the event
-- @column   kind TEXT request, file or call
-- @column   what TEXT kind of request, as the kernel prints it; inode of the
--   file, and its partition; name of the call
-- @column   bdi TEXT major:minor of the device; of a file and a call the file
--   system's, or its disk where that is a partition; where the call does not
--   say, the only one of which files failed; NULL = not told
-- @column   tid INTEGER thread that made the call; NULL for others
-- @column   comm TEXT its name then
-- @column   error TEXT its name
-- @column   bytes INTEGER of the request; NULL for others
-- @source   block/blk-mq.c blk_update_request(); fs/sync.c; mm/filemap.c
--   file_check_and_advance_wb_err(); lib/errseq.c: MAX_ERRNO is 4095
-- @materialize
CREATE VIEW _failed_write AS
WITH
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
      x.seq, x.ts, 'call', x.what, coalesce(x.device, o.device), x.tid, x.errno,
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
  write_error!(f.errno) AS error,
  f.bytes
FROM failed AS f
LEFT JOIN wb_device AS n
  ON instr(n.partitions, ' ' || f.bdi || ' ') > 0
LEFT JOIN wb_task AS t ON task_of!(t, f)
WHERE write_error!(f.errno) IS NOT NULL;

-- @view     _failed_call
-- @summary  Calls that wait until data is on the disk and did not succeed. The
--   file system's fsync, which names the device, may be inside a system call
--   that returns the same.
-- @grain    call; order seq
-- @column   seq INTEGER of wb_call
-- @column   ts INTEGER ns, when it returned
-- @column   what TEXT name of the call; ext4_sync_file for the file system's
-- @column   device TEXT major:minor of the file system; NULL = not told
-- @column   is_inside INTEGER 1: the system call around it is told, too
CREATE VIEW _failed_call AS
WITH
  followed AS (
    SELECT
      c.seq,
      c.end_ts AS ts,
      c.tid, c.call, c.errno, c.device,
      lag(c.device) OVER task AS last_device,
      lag(c.errno) OVER task AS last_errno,
      lag(c.end_ts) OVER task AS last_ts,
      lead(c.device) OVER task AS next_device,
      lead(c.errno) OVER task AS next_errno,
      lead(c.end_ts) OVER task AS next_ts
    FROM wb_call AS c
    WHERE c.errno > 0
    -- Those inside return first.
    WINDOW task AS (PARTITION BY c.tid ORDER BY c.end_ts, c.seq DESC)
  )
SELECT
  f.seq, f.ts, f.tid,
  f.call AS what,
  f.errno,
  CASE
    WHEN f.device IS NULL AND f.last_errno = f.errno
      AND f.ts - f.last_ts <= v.run_slack_ns
      THEN f.last_device
    ELSE f.device
  END AS device,
  coalesce(
    f.device IS NOT NULL AND f.next_device IS NULL AND f.next_errno = f.errno
    AND f.next_ts - f.ts <= v.run_slack_ns, 0
  ) AS is_inside
FROM followed AS f
CROSS JOIN wb_rule AS v;
