-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_block_done
-- @summary  Completed block requests, or completed parts of them.
-- @grain    completion; order ts
-- @needs    raw_block_rq_complete, wb_units
-- @events   block:block_rq_complete
-- @column   ts INTEGER ns, trace clock
-- @column   device TEXT major:minor
-- @column   op TEXT read, write, discard or other (flushes among them)
-- @column   bytes INTEGER completed bytes
-- @source   include/trace/events/block.h; block/blk-core.c fills rwbs
CREATE VIEW wb_block_done AS
SELECT
  c.ts,
  c.dev_major || ':' || c.dev_minor AS device,
  CASE
    WHEN instr(c.rwbs, 'D') > 0 THEN 'discard'
    WHEN instr(c.rwbs, 'W') > 0 THEN 'write'
    WHEN instr(c.rwbs, 'R') > 0 THEN 'read'
    ELSE 'other'
  END AS op,
  c.nr_sector * u.sector_bytes AS bytes
FROM raw_block_rq_complete AS c
CROSS JOIN wb_units AS u;
