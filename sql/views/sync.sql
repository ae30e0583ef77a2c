-- SPDX-License-Identifier: Apache-2.0
-- What tasks were in while they waited until dirty data was on the disk.

-- @view     wb_sync_wait
-- @shared
-- @summary  Waits until dirty data is on the disk: in sync and fsync, or only
--   for a page under writeback, as truncate and whoever writes to it do.
-- @grain    wait for a page, in sync or in fsync; order wait_id
-- @key      wait_id
-- @column   is_sync INTEGER 1: in sync or fsync; 0 = for a page, in no call of
--   these that events tell of
-- @column   call TEXT the call that it was in, as in what of wb_wait; NULL
--   where is_sync is 0
-- @column   is_failed INTEGER 1: that call returned an error of writing: what
--   it waited for is not on the disk
-- @source   fs/sync.c; mm/truncate.c truncate_inode_pages_range()
-- @materialize
CREATE VIEW wb_sync_wait AS
WITH
  calls AS (
    SELECT s.wait_id, s.tid, s.end_ts, s.what
    FROM wb_wait AS s
    WHERE s.kind IN ('sync', 'fsync')
  ),
  -- A call begins not later than the waits inside it, and is the last one that
  -- had begun: calls of a task do not overlap.
  inside AS (
    SELECT
      s.wait_id,
      s.tid,
      s.ts,
      max(
        CASE WHEN s.kind <> 'folio wait' THEN s.wait_id END
      ) OVER (PARTITION BY s.tid ORDER BY s.ts) AS call_id
    FROM wb_wait AS s
    WHERE s.kind IN ('sync', 'fsync', 'folio wait')
  )
SELECT
  i.wait_id,
  c.wait_id IS NOT NULL AS is_sync,
  c.what AS call,
  f.tid IS NOT NULL AS is_failed
FROM inside AS i
LEFT JOIN calls AS c
  ON c.wait_id = i.call_id AND (c.wait_id = i.wait_id OR c.end_ts > i.ts)
LEFT JOIN wb_failed_sync AS f ON f.tid = c.tid AND f.end_ts = c.end_ts;

-- @view     wb_sync_asked
-- @shared
-- @summary  Whether anybody called sync, fsync or the like, as far as all of
--   these calls were recorded.
-- @grain    one row
-- @optional syscalls:sys_enter_fsync, ext4:ext4_sync_file_enter
-- @column   is_asked INTEGER 1: somebody did; 0: nobody; NULL = not recorded
-- @source   fs/sync.c; a write to a file that is open with O_SYNC calls the
--   file system's fsync
CREATE VIEW wb_sync_asked AS
SELECT
  CASE
    WHEN EXISTS (SELECT 1 FROM raw_sys_enter_fsync)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_fdatasync)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_sync)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_syncfs)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_sync_file_range)
      OR EXISTS (SELECT 1 FROM raw_sys_enter_msync)
      OR EXISTS (SELECT 1 FROM raw_ext4_sync_file_enter) THEN 1
    WHEN count(DISTINCT r.event) = 6 THEN 0
  END AS is_asked
FROM raw_event_format AS r
WHERE r.event IN (
  'syscalls:sys_enter_fsync', 'syscalls:sys_enter_fdatasync',
  'syscalls:sys_enter_sync', 'syscalls:sys_enter_syncfs',
  'syscalls:sys_enter_msync', 'ext4:ext4_sync_file_enter'
);
