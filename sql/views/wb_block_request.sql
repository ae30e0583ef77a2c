-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_block_request
-- @summary  Block requests from being given to the driver to their end. A
--   request may end in parts: the part that ends where the request ends is its
--   completion, and that is also how the two events are matched. Flushes have
--   no place, and one at a time is in flight; they end in order.
-- @grain    issued request; order seq
-- @needs    raw_block_rq_issue, raw_block_rq_complete, wb_bounds, wb_units
-- @events   block:block_rq_issue, block:block_rq_complete
-- @column   seq INTEGER of block_rq_issue
-- @column   issued_ts INTEGER ns, given to the driver
-- @column   end_seq INTEGER of block_rq_complete; NULL = still in flight
-- @column   completed_ts INTEGER ns; NULL = still in flight
-- @column   until_ts INTEGER ns, completed_ts or the trace's end
-- @column   tid INTEGER thread that gave it to the driver, often a kworker
-- @column   device TEXT major:minor
-- @column   sector INTEGER first sector
-- @column   rwbs TEXT kind of request, as the kernel prints it
-- @column   op TEXT read, write, discard, flush or other
-- @column   bytes INTEGER of the request
-- @source   include/trace/events/block.h; block/blk-mq.c blk_update_request()
-- @materialize
CREATE VIEW wb_block_request AS
WITH
  steps AS (
    SELECT
      i.dev_major || ':' || i.dev_minor AS device,
      i.sector,
      CASE
        WHEN i.nr_sector > 0 THEN i.sector + i.nr_sector
        WHEN instr(i.rwbs, 'F') > 0 THEN -1
        ELSE -2
      END AS end_sector,
      i.seq,
      i.ts,
      i.tid,
      i.rwbs,
      i.nr_sector
    FROM raw_block_rq_issue AS i
    UNION ALL
    SELECT
      c.dev_major || ':' || c.dev_minor,
      c.sector,
      CASE
        WHEN c.nr_sector > 0 THEN c.sector + c.nr_sector
        WHEN instr(c.rwbs, 'F') > 0 THEN -1
        ELSE -2
      END,
      c.seq,
      c.ts,
      NULL,
      NULL,
      NULL
    FROM raw_block_rq_complete AS c
  ),
  paired AS (
    SELECT
      s.device,
      s.sector,
      s.seq,
      s.ts,
      s.tid,
      s.rwbs,
      s.nr_sector,
      lead(s.seq) OVER place AS end_seq,
      lead(s.ts) OVER place AS completed_ts,
      lead(s.nr_sector) OVER place AS next_nr_sector
    FROM steps AS s
    WINDOW place AS (PARTITION BY s.device, s.end_sector ORDER BY s.seq)
  )
SELECT
  p.seq,
  p.ts AS issued_ts,
  CASE WHEN p.next_nr_sector IS NULL THEN p.end_seq END AS end_seq,
  CASE WHEN p.next_nr_sector IS NULL THEN p.completed_ts END AS completed_ts,
  CASE
    WHEN p.completed_ts IS NULL THEN b.last_ts
    ELSE p.completed_ts
  END AS until_ts,
  p.tid,
  p.device,
  p.sector,
  p.rwbs,
  CASE
    WHEN instr(p.rwbs, 'D') > 0 THEN 'discard'
    WHEN p.nr_sector = 0 AND instr(p.rwbs, 'F') > 0 THEN 'flush'
    WHEN instr(p.rwbs, 'W') > 0 THEN 'write'
    WHEN instr(p.rwbs, 'R') > 0 THEN 'read'
    ELSE 'other'
  END AS op,
  p.nr_sector * u.sector_bytes AS bytes
FROM paired AS p
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
WHERE p.nr_sector IS NOT NULL;
