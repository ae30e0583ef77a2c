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
      s.wait_id, s.tid, s.ts,
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
