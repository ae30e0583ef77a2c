-- SPDX-License-Identifier: Apache-2.0
-- Where tasks waited.

-- @query    stalls_before
-- @title    Waits that began before the part
-- @summary  Waits of tasks that began before the time of interest and go on in
--   it, each with the finding that would tell of it.
-- @read     Every other table has a wait in the part in which it begins. Of a
--   whole run there are no rows.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    stall; order ts
-- @keys     ts, tid, comm, kind
-- @first    cause, inside_ns, dur, bdi
-- @events   as lost_time
-- @optional as lost_time
-- @column   ts INTEGER ns, start of the wait
-- @column   dur INTEGER ns, its time without the waits inside it
-- @column   inside_ns INTEGER how much of that lies in the time of interest
-- @column   kind TEXT as in stalls
-- @column   cause TEXT as in stalls
-- @column   cgroup_ino INTEGER cgroup that owns the wb; throttle only
-- @column   finding TEXT id of the finding; NULL = none tells of it
-- @column   is_told INTEGER 1: the finding began_before tells of it; of a
--   throttled task each sleep is short, and its own part tells of the next
-- @source   docs/findings.md
SELECT
  l.ts, l.dur, w.inside_ns, l.tid, l.comm, l.kind, l.cause, l.bdi, l.cgroup_ino,
  l.finding,
  coalesce(
    l.kind <> 'throttle' AND l.finding <> 'flusher_waits_journal', 0
  ) AS is_told
FROM _wait_before AS w
CROSS JOIN wb_loss AS l ON l.wait_id = w.wait_id
CROSS JOIN wb_params AS p
WHERE asked!(l, p)
ORDER BY l.ts, l.wait_id;

-- @view     _wait_before
-- @summary  Waits that began before the time of interest and go on in it. Of a
--   whole trace there are none.
-- @grain    wait; order wait_id
-- @key      wait_id
-- @column   inside_ns INTEGER how much of its own time lies in the time of
--   interest
-- @materialize
CREATE VIEW _wait_before AS
WITH
  asked AS MATERIALIZED (
    SELECT b.start_ts, b.end_ts
    FROM wb_bounds AS b
    WHERE b.start_ts > b.first_ts
  )
SELECT
  p.wait_id,
  sum(min(p.to_ts, a.end_ts) - max(p.from_ts, a.start_ts)) AS inside_ns
FROM asked AS a
CROSS JOIN wb_wait_piece AS p
CROSS JOIN wb_wait AS w ON w.wait_id = p.wait_id
WHERE p.to_ts > a.start_ts
  AND p.from_ts < a.end_ts
  AND w.ts < a.start_ts
GROUP BY p.wait_id;
