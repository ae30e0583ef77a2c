-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    pool
-- @title    Whose dirty pages filled the machine's pool
-- @summary  What each wb held of the machine's dirty pages, in windows.
-- @read     held is the mean of what the wb's own events and samples say; those
--   of a window add up to the machine's dirty pages. A row without bdi is what
--   no event or sample shows: a wb is seen only while its tasks are throttled,
--   or where `record` sampled debugfs.
-- @filters  window, range, bdi, cgroup
-- @grain    window, bdi, cgroup; order window_start_ns, bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   bdi TEXT whose pages; NULL = unknown
-- @column   cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   held_bytes REAL mean of what it held
-- @column   held_ratio REAL of the machine's dirty pages
-- @column   pool_bytes INTEGER mean of the machine's dirty pages
-- @source   docs/findings.md
-- @cost     64
WITH
  -- From 6.10 on a bdi's own row is the sum of those of its cgroups.
  split AS (
    SELECT DISTINCT s.device AS bdi
    FROM wb_usage AS s
    WHERE s.source = 'bdi' AND s.cgroup_ino IS NOT NULL
  ),
  told AS (
    SELECT
      t.ts, t.bdi, coalesce(t.cgroup_ino, 1) AS cgroup_ino, t.wb_dirty_bytes,
      0 AS is_sample
    FROM wb_throttle AS t
    WHERE t.is_step = 1
    UNION ALL
    SELECT
      s.ts, s.device, coalesce(s.cgroup_ino, 1),
      s.dirty_bytes + s.writeback_bytes, 1
    FROM wb_usage AS s
    WHERE s.source = 'bdi'
      AND (
        s.cgroup_ino IS NOT NULL
        OR s.device NOT IN (SELECT p.bdi FROM split AS p)
      )
  ),
  numbered AS (
    SELECT
      CAST((t.ts - b.start_ts) / q.window_ns AS INTEGER) AS window_index,
      t.bdi, t.cgroup_ino, t.ts, t.wb_dirty_bytes, t.is_sample
    FROM told AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS q
    WHERE in_time!(t.ts, b) AND t.wb_dirty_bytes IS NOT NULL
  ),
  ranked AS (
    SELECT
      n.window_index, n.bdi, n.cgroup_ino, n.ts, n.wb_dirty_bytes,
      avg(n.wb_dirty_bytes) OVER (
        PARTITION BY n.bdi, n.cgroup_ino, n.window_index
      ) AS mean_bytes,
      row_number() OVER (
        PARTITION BY n.bdi, n.cgroup_ino, n.window_index
        ORDER BY n.ts DESC, n.is_sample
      ) AS place
    FROM numbered AS n
  ),
  last AS (
    SELECT
      r.*,
      lead(r.window_index) OVER (
        PARTITION BY r.bdi, r.cgroup_ino ORDER BY r.window_index
      ) AS next_index
    FROM ranked AS r
    WHERE r.place = 1
  ),
  -- A window without a sample goes by the last one, if that is not too old.
  held AS (
    SELECT
      w.window_index, l.bdi, l.cgroup_ino,
      CASE WHEN w.window_index = l.window_index THEN l.mean_bytes
        ELSE l.wb_dirty_bytes
      END AS held_bytes
    FROM last AS l
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_params AS q
    -- With both ends, each window is looked at once for each wb.
    JOIN wb_window AS w
      ON w.window_index >= l.window_index
      AND w.window_index
        < coalesce(l.next_index, l.window_index + 2 + v.stale_ns / q.window_ns)
    WHERE w.window_index = l.window_index
      OR w.window_start_ns - l.ts <= v.stale_ns
  ),
  known AS (
    SELECT h.window_index, sum(h.held_bytes) AS held_bytes
    FROM held AS h
    GROUP BY h.window_index
  ),
  pool AS (
    SELECT
      d.window_index, d.window_start_ns,
      d.dirty_bytes AS pool_bytes,
      max(1.0, 1.0 * k.held_bytes / nullif(d.dirty_bytes, 0)) AS too_much,
      coalesce(k.held_bytes, 0) AS known_bytes
    FROM wb_dirty_window AS d
    LEFT JOIN known AS k ON k.window_index = d.window_index
    WHERE d.dirty_bytes > 0
  ),
  share AS (
    SELECT
      p.window_start_ns, h.bdi, h.cgroup_ino,
      h.held_bytes / p.too_much AS held_bytes,
      h.held_bytes / p.too_much / p.pool_bytes AS held_ratio,
      p.pool_bytes
    FROM pool AS p
    JOIN held AS h ON h.window_index = p.window_index
    WHERE h.held_bytes > 0
    UNION ALL
    SELECT
      p.window_start_ns, NULL, NULL,
      1.0 * (p.pool_bytes - p.known_bytes),
      1 - 1.0 * p.known_bytes / p.pool_bytes,
      p.pool_bytes
    FROM pool AS p
    WHERE p.pool_bytes > p.known_bytes
  )
SELECT
  s.window_start_ns, s.bdi, s.cgroup_ino, s.held_bytes, s.held_ratio,
  s.pool_bytes
FROM share AS s
CROSS JOIN wb_params AS p
WHERE of_wb!(s, p)
ORDER BY s.window_start_ns, s.bdi IS NULL, s.bdi, s.cgroup_ino;
