-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_busy
-- @summary  Stretches of time in which a device had at least one request, a
--   journal committed, or kswapd of any node was awake.
-- @grain    stretch; order resource, device, from_ts
-- @needs    wb_wait_request, raw_jbd2_start_commit, raw_jbd2_end_commit,
--   raw_mm_vmscan_kswapd_wake, raw_mm_vmscan_kswapd_sleep, wb_bounds
-- @optional block:block_rq_issue, block:block_rq_complete,
--   jbd2:jbd2_start_commit, jbd2:jbd2_end_commit,
--   vmscan:mm_vmscan_kswapd_wake, vmscan:mm_vmscan_kswapd_sleep
-- @column   resource TEXT device, journal or kswapd
-- @column   device TEXT major:minor; node for kswapd of any node
-- @column   from_ts INTEGER ns, start
-- @column   to_ts INTEGER ns, end
-- @column   before_ns INTEGER sum of the stretches before this one
-- @source   block/blk-mq.c; fs/jbd2/commit.c; mm/vmscan.c kswapd()
-- @materialize
CREATE VIEW wb_busy AS
WITH
  commits AS (
    SELECT
      c.dev_major || ':' || c.dev_minor AS device,
      c.seq,
      c.ts,
      0 AS is_end
    FROM raw_jbd2_start_commit AS c
    UNION ALL
    SELECT c.dev_major || ':' || c.dev_minor, c.seq, c.ts, 1
    FROM raw_jbd2_end_commit AS c
  ),
  commit_pair AS (
    SELECT
      c.device,
      c.ts,
      c.is_end,
      lag(c.is_end) OVER journal AS prev_is_end,
      lead(c.is_end) OVER journal AS next_is_end,
      lead(c.ts) OVER journal AS next_ts
    FROM commits AS c
    WINDOW journal AS (PARTITION BY c.device ORDER BY c.seq)
  ),
  kswapd AS (
    SELECT w.nid, w.seq, w.ts, 0 AS is_end
    FROM raw_mm_vmscan_kswapd_wake AS w
    UNION ALL
    SELECT s.nid, s.seq, s.ts, 1
    FROM raw_mm_vmscan_kswapd_sleep AS s
  ),
  -- Several wakes can precede one sleep.
  kswapd_step AS (
    SELECT
      k.*,
      lag(k.is_end) OVER (PARTITION BY k.nid ORDER BY k.seq) AS prev_is_end
    FROM kswapd AS k
  ),
  kswapd_pair AS (
    SELECT
      k.ts,
      k.is_end,
      k.prev_is_end,
      lead(k.ts) OVER (PARTITION BY k.nid ORDER BY k.seq) AS next_ts
    FROM kswapd_step AS k
    WHERE k.prev_is_end IS NULL OR k.prev_is_end <> k.is_end
  ),
  stretches AS (
    SELECT
      'device' AS resource,
      r.device,
      coalesce(r.issue_ts, r.ts) AS from_ts,
      r.end_ts AS to_ts
    FROM wb_wait_request AS r
    UNION ALL
    SELECT 'journal', c.device, c.ts, coalesce(c.next_ts, b.last_ts)
    FROM commit_pair AS c
    CROSS JOIN wb_bounds AS b
    WHERE c.is_end = 0 AND (c.next_is_end IS NULL OR c.next_is_end = 1)
    UNION ALL
    SELECT 'journal', c.device, b.first_ts, c.ts
    FROM commit_pair AS c
    CROSS JOIN wb_bounds AS b
    WHERE c.is_end = 1 AND c.prev_is_end IS NULL
    UNION ALL
    SELECT 'kswapd', 'node', k.ts, coalesce(k.next_ts, b.last_ts)
    FROM kswapd_pair AS k
    CROSS JOIN wb_bounds AS b
    WHERE k.is_end = 0
    UNION ALL
    SELECT 'kswapd', 'node', b.first_ts, k.ts
    FROM kswapd_pair AS k
    CROSS JOIN wb_bounds AS b
    WHERE k.is_end = 1 AND k.prev_is_end IS NULL
  ),
  reached AS (
    SELECT
      s.*,
      max(s.to_ts) OVER (
        PARTITION BY s.resource, s.device ORDER BY s.from_ts, s.to_ts
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ts
    FROM stretches AS s
  ),
  apart AS (
    SELECT
      r.resource,
      r.device,
      CASE WHEN r.reached_ts > r.from_ts THEN r.reached_ts ELSE r.from_ts END
        AS from_ts,
      r.to_ts
    FROM reached AS r
    WHERE r.reached_ts IS NULL OR r.to_ts > r.reached_ts
  )
SELECT
  a.resource,
  a.device,
  a.from_ts,
  a.to_ts,
  sum(a.to_ts - a.from_ts) OVER (
    PARTITION BY a.resource, a.device ORDER BY a.from_ts, a.to_ts
    ROWS UNBOUNDED PRECEDING
  ) - (a.to_ts - a.from_ts) AS before_ns
FROM apart AS a;
