-- SPDX-License-Identifier: Apache-2.0
-- Changes of the dirty limit in the middle of a run.

-- @view     wb_limit_change
-- @shared
-- @summary  Changes of the machine's dirty threshold by who sets vm.dirty_bytes
--   or a ratio: the kernel then takes it for its smoothed limit, too. Where a
--   ratio's threshold falls with the free memory, that limit stays behind. Of
--   eight samples the lowest counts: a real-time task's are higher.
-- @grain    change; order seq
-- @key      seq
-- @optional writeback:global_dirty_state
-- @column   seq INTEGER of the first sample with the new threshold
-- @column   from_pages INTEGER threshold before
-- @column   to_pages INTEGER threshold behind
-- @column   dirty_pages INTEGER dirty and under writeback then
-- @column   drained_ts INTEGER ns, where more was dirty than a limit that was
--   lowered lets: the first sample with no more, the next change, or behind the
--   trace's end, what comes first. Until then every writer waits for the disks;
--   NULL = no more was dirty
-- @source   mm/page-writeback.c dirty_bytes_handler(),
--   writeback_set_ratelimit(), domain_update_dirty_limit()
-- @materialize
-- @cost     140
CREATE VIEW wb_limit_change AS
WITH
  -- Most runs need no look at each sample beside the one before.
  asked AS (
    SELECT v.limit_step_factor AS factor, v.stale_ns, v.few_pages_count
    FROM wb_rule AS v
    WHERE (
      SELECT max(g.thresh) - v.limit_step_factor * min(g.thresh)
      FROM raw_global_dirty_state AS g
    ) > 0
  ),
  step AS (
    SELECT
      n.seq, n.ts,
      dirty_pages!(n) AS dirty_pages,
      (
        SELECT min(x.thresh)
        FROM (
          SELECT o.thresh
          FROM raw_global_dirty_state AS o
          WHERE o.seq < n.seq
          ORDER BY o.seq DESC
          LIMIT 8
        ) AS x
      ) AS from_pages,
      (
        SELECT min(x.thresh)
        FROM (
          SELECT o.thresh
          FROM raw_global_dirty_state AS o
          WHERE o.seq >= n.seq
          ORDER BY o.seq
          LIMIT 8
        ) AS x
      ) AS to_pages,
      (
        SELECT min(x.dirty_limit)
        FROM (
          SELECT o.dirty_limit
          FROM raw_global_dirty_state AS o
          WHERE o.seq >= n.seq
          ORDER BY o.seq
          LIMIT 8
        ) AS x
      ) AS limit_pages,
      a.factor, a.few_pages_count
    FROM asked AS a
    CROSS JOIN wb_units AS u
    CROSS JOIN raw_global_dirty_state AS n
    CROSS JOIN raw_global_dirty_state AS p ON p.seq = n.prev_seq
    WHERE coalesce(n.repeats_count, 0) = 0
      AND (n.thresh > a.factor * p.thresh OR p.thresh > a.factor * n.thresh)
      -- The smoothed limit rises at once, whatever made the threshold rise: in
      -- a longer time memory may have come free. A threshold in bytes does not
      -- care.
      AND (
        n.thresh < p.thresh
        OR n.ts - p.ts <= a.stale_ns
        OR p.thresh = (u.dirty_bytes + u.page_bytes - 1) / u.page_bytes
      )
  ),
  change AS (
    SELECT
      s.seq, s.ts, s.from_pages, s.to_pages, s.dirty_pages,
      lead(s.ts) OVER (ORDER BY s.seq) AS next_ts
    FROM step AS s
    WHERE abs(s.to_pages - s.from_pages) >= s.few_pages_count
      AND s.limit_pages <= s.factor * s.to_pages
      AND (
        s.to_pages > s.factor * s.from_pages
        OR s.from_pages > s.factor * s.to_pages
      )
  )
SELECT
  c.seq, c.ts, c.from_pages, c.to_pages, c.dirty_pages,
  CASE WHEN c.dirty_pages > c.to_pages AND c.to_pages < c.from_pages
    THEN min(
      coalesce(
        (
          SELECT d.ts
          FROM raw_global_dirty_state AS d
          WHERE d.seq > c.seq AND dirty_pages!(d) <= c.to_pages
          ORDER BY d.seq
          LIMIT 1
        ),
        t.last_ts + 1
      ),
      coalesce(c.next_ts, t.last_ts + 1)
    )
  END AS drained_ts
FROM change AS c
CROSS JOIN wb_units AS t;
