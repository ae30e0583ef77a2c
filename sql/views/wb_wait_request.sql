-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_wait_request
-- @summary  Block requests with the task that submitted them.
-- @grain    request; order seq
-- @needs    raw_block_rq_insert, raw_block_rq_issue, raw_block_rq_complete,
--   raw_lost_events, wb_bounds
-- @optional block:block_rq_insert, block:block_rq_issue,
--   block:block_rq_complete
-- @column   seq INTEGER of its insert, or of its issue where it was never
--   queued
-- @column   ts INTEGER ns, when it was queued, or issued where it never was
-- @column   issue_ts INTEGER ns, when the driver got it
-- @column   end_ts INTEGER ns, when it, or the first part of it, completed; the
--   trace's end where it did not
-- @column   tid INTEGER thread that queued it, or issued it
-- @column   device TEXT major:minor
-- @column   rwbs TEXT kind of request, as the kernel prints it
-- @column   is_sync INTEGER 1: somebody waits for it: a read that is no
--   readahead, a flush, or marked REQ_SYNC
-- @source   include/trace/events/block.h; kernel/trace/blktrace.c
--   blk_fill_rwbs(); requests are matched by device and sector
-- @materialize
CREATE VIEW wb_wait_request AS
WITH
  steps AS (
    SELECT
      i.seq,
      i.ts,
      i.tid,
      i.dev_major,
      i.dev_minor,
      i.sector,
      i.rwbs,
      'insert' AS step
    FROM raw_block_rq_insert AS i
    UNION ALL
    SELECT
      i.seq,
      i.ts,
      i.tid,
      i.dev_major,
      i.dev_minor,
      i.sector,
      i.rwbs,
      'issue'
    FROM raw_block_rq_issue AS i
    UNION ALL
    SELECT
      c.seq,
      c.ts,
      c.tid,
      c.dev_major,
      c.dev_minor,
      c.sector,
      c.rwbs,
      'complete'
    FROM raw_block_rq_complete AS c
  ),
  followed AS (
    SELECT
      s.*,
      lag(s.step) OVER place AS prev_step,
      lead(s.step, 1) OVER place AS step_1,
      lead(s.ts, 1) OVER place AS ts_1,
      lead(s.step, 2) OVER place AS step_2,
      lead(s.ts, 2) OVER place AS ts_2,
      lead(s.step, 3) OVER place AS step_3,
      lead(s.ts, 3) OVER place AS ts_3
    FROM steps AS s
    WINDOW place AS (
      PARTITION BY s.dev_major, s.dev_minor, s.sector ORDER BY s.seq
    )
  ),
  -- A request that was queued and neither issued nor completed may have been
  -- merged into another one: not taken. One that is requeued is issued twice.
  timed AS (
    SELECT
      f.*,
      CASE
        WHEN f.step = 'issue' THEN f.ts
        WHEN f.step_1 = 'issue' THEN f.ts_1
      END AS issue_ts,
      CASE
        WHEN f.step_1 = 'complete' THEN f.ts_1
        WHEN f.step_1 = 'issue' AND f.step_2 = 'complete' THEN f.ts_2
        WHEN f.step_1 = 'issue' AND f.step_2 = 'issue'
          AND f.step_3 = 'complete' THEN f.ts_3
      END AS complete_ts,
      (f.step = 'issue' AND f.step_1 IS NULL)
      OR (f.step_1 = 'issue' AND f.step_2 IS NULL) AS is_open
    FROM followed AS f
    WHERE f.step = 'insert'
      OR (
        f.step = 'issue'
        AND (f.prev_step IS NULL OR f.prev_step = 'complete')
      )
  )
SELECT
  t.seq,
  t.ts,
  t.issue_ts,
  coalesce(t.complete_ts, b.last_ts) AS end_ts,
  t.tid,
  t.dev_major || ':' || t.dev_minor AS device,
  t.rwbs,
  CASE
    WHEN instr(t.rwbs, 'S') > 0 OR instr(t.rwbs, 'F') > 0 THEN 1
    WHEN instr(t.rwbs, 'R') > 0 AND instr(t.rwbs, 'A') = 0 THEN 1
    ELSE 0
  END AS is_sync
FROM timed AS t
CROSS JOIN wb_bounds AS b
WHERE t.complete_ts IS NOT NULL
  OR (t.is_open AND NOT EXISTS (SELECT 1 FROM raw_lost_events));
