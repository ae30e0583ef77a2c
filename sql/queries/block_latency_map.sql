-- SPDX-License-Identifier: Apache-2.0
-- Disks and flushers.

-- @query    block_latency_map
-- @title    Time that block requests took, over time
-- @summary  How many requests of each device were issued in each window, by
--   how long they took.
-- @read     Lengths are in classes that double: at_least <= length < below. A
--   band that splits in two is a cache or a queue that fills; a stain high
--   above the rest is what a reader or an fsync waits for. block_latency has
--   the percentiles of the whole run. Requests without an end in the trace are
--   left out.
-- @filters  window, range, bdi
-- @grain    window, device, op, class of lengths; order window_start_ns,
--   device, op, at_least_ns
-- @keys     window_start_ns, device, op, at_least_ns
-- @events   block:block_rq_issue, block:block_rq_complete
-- @column   device TEXT major:minor
-- @column   op TEXT read, write, discard, flush or other
-- @column   at_least_ns INTEGER shortest latency of the class, a power of two;
--   0 = under 2 ns
-- @column   below_ns INTEGER the next class begins here
-- @column   requests_count INTEGER requests issued in the window that took so
--   long
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @cost     100
WITH
  chosen AS (
    SELECT
      (r.issued_ts - b.start_ts) / p.window_ns AS window_index,
      r.device, r.op,
      r.completed_ts - r.issued_ts AS latency_ns
    FROM wb_block_request AS r
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE r.completed_ts IS NOT NULL
      AND in_time!(r.issued_ts, b)
      AND of_disk!(r.device, p)
  ),
  -- The place of the highest bit, found by halves: SQLite has no logarithm.
  half AS (
    SELECT
      c.*,
      CASE WHEN c.latency_ns >> 32 > 0 THEN 32 ELSE 0 END AS bits
    FROM chosen AS c
  ),
  quarter AS (
    SELECT
      h.window_index, h.device, h.op, h.latency_ns,
      h.bits + CASE WHEN h.latency_ns >> (h.bits + 16) > 0 THEN 16 ELSE 0 END
        AS bits
    FROM half AS h
  ),
  eighth AS (
    SELECT
      q.window_index, q.device, q.op, q.latency_ns,
      q.bits + CASE WHEN q.latency_ns >> (q.bits + 8) > 0 THEN 8 ELSE 0 END
        AS bits
    FROM quarter AS q
  ),
  nibble AS (
    SELECT
      e.window_index, e.device, e.op, e.latency_ns,
      e.bits + CASE WHEN e.latency_ns >> (e.bits + 4) > 0 THEN 4 ELSE 0 END
        AS bits
    FROM eighth AS e
  ),
  pair AS (
    SELECT
      n.window_index, n.device, n.op, n.latency_ns,
      n.bits + CASE WHEN n.latency_ns >> (n.bits + 2) > 0 THEN 2 ELSE 0 END
        AS bits
    FROM nibble AS n
  ),
  classed AS (
    SELECT
      p.window_index, p.device, p.op,
      p.bits + CASE WHEN p.latency_ns >> (p.bits + 1) > 0 THEN 1 ELSE 0 END
        AS bits
    FROM pair AS p
  )
SELECT
  w.window_start_ns, c.device, c.op,
  CASE WHEN c.bits = 0 THEN 0 ELSE 1 << c.bits END AS at_least_ns,
  1 << (c.bits + 1) AS below_ns,
  count(*) AS requests_count,
  max(w.lost_gaps_count) AS lost_gaps_count
FROM classed AS c
JOIN wb_window AS w ON w.window_index = c.window_index
GROUP BY w.window_start_ns, c.device, c.op, c.bits
ORDER BY w.window_start_ns, c.device, c.op, c.bits;
