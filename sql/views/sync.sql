-- SPDX-License-Identifier: Apache-2.0
-- What tasks were in while they waited until dirty data was on the disk.

-- @view     wb_sync_wait
-- @shared
-- @summary  Waits until dirty data is on the disk: in sync and fsync, or only
--   for a page under writeback, as truncate and whoever writes to it do.
-- @grain    wait for a page, in sync or in fsync; order wait_id
-- @key      wait_id
-- @needs    wb_stall
-- @column   wait_id INTEGER of wb_stall
-- @column   is_sync INTEGER 1: in sync or fsync; 0 = for a page, in no call of
--   these that events tell of
-- @source   fs/sync.c; mm/truncate.c truncate_inode_pages_range()
-- @materialize
CREATE VIEW wb_sync_wait AS
SELECT
  s.wait_id,
  CASE
    WHEN s.kind <> 'folio wait' THEN 1
    -- A call begins not later than the waits inside it.
    ELSE coalesce(
      max(CASE WHEN s.kind <> 'folio wait' THEN s.ts + s.span_ns END)
        OVER (PARTITION BY s.tid ORDER BY s.ts) > s.ts, 0
    )
  END AS is_sync
FROM wb_stall AS s
WHERE s.kind IN ('sync', 'fsync', 'folio wait');
