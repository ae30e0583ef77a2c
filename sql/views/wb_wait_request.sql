-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_wait_request
-- @summary  Block requests with the task that submitted them and the time that
--   they stood in a queue: those of wb_block_request, with the block_rq_insert
--   before them. One issued again after a requeue is one request. Where
--   block_rq_issue was not recorded, a request goes from its insert to its
--   first completion.
-- @grain    request; order seq
-- @needs    raw_block_rq_insert, raw_block_rq_complete, wb_block_request,
--   raw_lost_events, wb_bounds, wb_units
-- @optional block:block_rq_insert, block:block_rq_issue,
--   block:block_rq_complete
-- @column   seq INTEGER of its insert, or of its issue where it was never
--   queued
-- @column   ts INTEGER ns, when it was queued, or issued where it never was
-- @column   issue_ts INTEGER ns, when the driver first got it
-- @column   end_ts INTEGER ns, when its last part completed; the trace's end
--   where it did not
-- @column   tid INTEGER thread that queued it, or issued it
-- @column   device TEXT major:minor
-- @column   rwbs TEXT kind of request, as the kernel prints it
-- @column   sector INTEGER first sector
-- @column   bytes INTEGER of the request, as its first event tells
-- @column   is_sync INTEGER 1: somebody waits for it: a read that is no
--   readahead, a flush, or marked REQ_SYNC
-- @source   include/trace/events/block.h; kernel/trace/blktrace.c
--   blk_fill_rwbs(); an insert is matched by device and first sector
-- @materialize
CREATE VIEW wb_wait_request AS
WITH
  steps AS (
    SELECT
      i.seq,
      i.ts,
      i.tid,
      i.dev_major || ':' || i.dev_minor AS device,
      i.sector,
      i.rwbs,
      'insert' AS step,
      i.nr_sector * u.sector_bytes AS bytes,
      NULL AS done_ts,
      NULL AS until_ts
    FROM raw_block_rq_insert AS i
    CROSS JOIN wb_units AS u
    UNION ALL
    SELECT
      r.seq,
      r.issued_ts,
      r.tid,
      r.device,
      r.sector,
      r.rwbs,
      'issue',
      r.bytes,
      r.completed_ts,
      r.until_ts
    FROM wb_block_request AS r
    UNION ALL
    SELECT
      c.seq,
      c.ts,
      c.tid,
      c.dev_major || ':' || c.dev_minor,
      c.sector,
      c.rwbs,
      'complete',
      NULL,
      c.ts,
      c.ts
    FROM raw_block_rq_complete AS c
    WHERE NOT EXISTS (SELECT 1 FROM wb_block_request)
  ),
  followed AS (
    SELECT
      s.*,
      lag(s.step) OVER place AS prev_step,
      lag(s.done_ts) OVER place AS prev_done_ts,
      lead(s.step, 1) OVER place AS step_1,
      lead(s.ts, 1) OVER place AS ts_1,
      lead(s.done_ts, 1) OVER place AS done_1_ts,
      lead(s.until_ts, 1) OVER place AS until_1_ts,
      lead(s.step, 2) OVER place AS step_2,
      lead(s.done_ts, 2) OVER place AS done_2_ts,
      lead(s.until_ts, 2) OVER place AS until_2_ts
    FROM steps AS s
    WINDOW place AS (PARTITION BY s.device, s.sector ORDER BY s.seq)
  ),
  -- A request that was queued and neither issued nor completed may have been
  -- merged into another one: not taken.
  timed AS (
    SELECT
      f.*,
      CASE
        WHEN f.step = 'issue' THEN f.ts
        WHEN f.step_1 = 'issue' THEN f.ts_1
      END AS issue_ts,
      CASE
        WHEN f.step = 'issue' AND f.done_ts IS NULL AND f.step_1 = 'issue'
          THEN f.done_1_ts
        WHEN f.step = 'issue' THEN f.done_ts
        WHEN f.step_1 = 'issue' AND f.done_1_ts IS NULL AND f.step_2 = 'issue'
          THEN f.done_2_ts
        WHEN f.step_1 IN ('issue', 'complete') THEN f.done_1_ts
      END AS complete_ts,
      CASE
        WHEN f.step = 'issue' AND f.done_ts IS NULL AND f.step_1 = 'issue'
          THEN f.until_1_ts
        WHEN f.step = 'issue' THEN f.until_ts
        WHEN f.step_1 = 'issue' AND f.done_1_ts IS NULL AND f.step_2 = 'issue'
          THEN f.until_2_ts
        WHEN f.step_1 = 'issue' THEN f.until_1_ts
      END AS open_until_ts
    FROM followed AS f
    WHERE f.step = 'insert'
      OR (
        f.step = 'issue'
        AND (
          f.prev_step IS NULL
          OR (f.prev_step = 'issue' AND f.prev_done_ts IS NOT NULL)
        )
      )
  )
SELECT
  t.seq,
  t.ts,
  t.issue_ts,
  coalesce(t.complete_ts, t.open_until_ts) AS end_ts,
  t.tid,
  t.device,
  t.rwbs,
  t.sector,
  t.bytes,
  CASE
    WHEN instr(t.rwbs, 'S') > 0 OR instr(t.rwbs, 'F') > 0 THEN 1
    WHEN instr(t.rwbs, 'R') > 0 AND instr(t.rwbs, 'A') = 0 THEN 1
    ELSE 0
  END AS is_sync
FROM timed AS t
CROSS JOIN wb_bounds AS b
WHERE t.complete_ts IS NOT NULL
  OR (
    t.open_until_ts = b.last_ts
    AND NOT EXISTS (SELECT 1 FROM raw_lost_events)
  );
