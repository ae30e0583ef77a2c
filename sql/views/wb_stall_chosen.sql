-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_stall_chosen
-- @summary  The stalls that the filters choose; of more than 10000 the longest
--   10000, which nobody reads to the end.
-- @grain    stall; order wait_id
-- @needs    wb_stall, wb_bounds, wb_params
-- @column   wait_id INTEGER as in wb_stall
-- @column   ts INTEGER as in wb_stall
-- @column   dur INTEGER as in wb_stall
-- @column   span_ns INTEGER as in wb_stall
-- @column   tid INTEGER as in wb_stall
-- @column   comm TEXT as in wb_stall
-- @column   kind TEXT as in wb_stall
-- @column   what TEXT as in wb_stall
-- @column   cause TEXT as in wb_stall
-- @column   bdi TEXT as in wb_stall
-- @column   journal_ratio REAL as in wb_stall
-- @column   device_ratio REAL as in wb_stall
-- @column   ref_seq INTEGER as in wb_stall
-- @materialize
CREATE VIEW wb_stall_chosen AS
SELECT
  s.wait_id,
  s.ts,
  s.dur,
  s.span_ns,
  s.tid,
  s.comm,
  s.kind,
  s.what,
  s.cause,
  s.bdi,
  s.journal_ratio,
  s.device_ratio,
  s.ref_seq
FROM wb_stall AS s
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS p
WHERE s.ts >= b.start_ts
  AND s.ts < b.end_ts
  AND (p.bdi IS NULL OR s.bdi = p.bdi)
  AND (p.tid IS NULL OR s.tid = p.tid)
  AND (p.comm_glob IS NULL OR s.comm GLOB p.comm_glob)
  AND (p.cgroup_ino IS NULL OR s.cgroup_ino = p.cgroup_ino)
ORDER BY coalesce(s.dur, 0) DESC, s.wait_id
LIMIT 10000;
