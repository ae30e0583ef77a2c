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
FROM wb_failed_write AS w
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE in_time!(w.ts, b)
  AND (p.bdi IS NULL OR w.bdi = p.bdi)
  AND (p.tid IS NULL OR w.tid = p.tid)
  AND (p.comm_glob IS NULL OR w.comm GLOB p.comm_glob)
GROUP BY w.bdi, w.kind, w.what, w.tid, w.comm, w.error
ORDER BY first_ts, w.bdi, w.kind, w.what, w.tid, w.comm, w.error;
