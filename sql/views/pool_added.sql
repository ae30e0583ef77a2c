-- SPDX-License-Identifier: Apache-2.0
-- Who dirtied the pages that a throttled task waited for.

-- @view     wb_pool_added
-- @shared
-- @summary  Who dirtied pages while each throttled task was held up, and in the
--   time before that the pool takes to be written: shares of what the machine
--   dirtied, by windows, weighted by how long the task slept in each.
-- @grain    task under a name, bdi, cgroup, holder; order task_id
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   holder_bdi TEXT whose pages; NULL = unknown
-- @column   holder_cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   added_ratio REAL its share of what was dirtied
CREATE VIEW wb_pool_added AS
WITH RECURSIVE
  part AS (
    SELECT
      CAST(p.window_index AS INTEGER) AS window_index,
      p.bdi,
      coalesce(p.cgroup_ino, 1) AS cgroup_ino,
      sum(p.dirtied_bytes) AS bytes
    FROM wb_dirtied_part AS p
    GROUP BY 1, p.bdi, coalesce(p.cgroup_ino, 1)
  ),
  whole AS (
    SELECT p.window_index, sum(p.bytes) AS bytes
    FROM part AS p
    GROUP BY p.window_index
  ),
  speed AS (
    SELECT
      1.0 * sum(f.written_bytes) * u.second_ns / nullif(sum(f.window_ns), 0)
        AS bytes_per_s
    FROM wb_dirty_flow AS f
    CROSS JOIN wb_units AS u
    GROUP BY u.second_ns
  ),
  -- Windows that the pool takes to be written.
  drain AS (
    SELECT
      d.window_index,
      min(
        v.drain_most_count,
        1 + CAST(
          d.dirty_bytes * 1.0 * u.second_ns / s.bytes_per_s / q.window_ns
          AS INTEGER
        )
      ) AS windows_count
    FROM wb_dirty_window AS d
    CROSS JOIN speed AS s
    CROSS JOIN wb_params AS q
    CROSS JOIN wb_units AS u
    CROSS JOIN wb_rule AS v
  ),
  slept AS (
    SELECT
      s.task_id,
      s.bdi,
      s.cgroup_ino,
      CAST((s.ts - b.start_ts) / q.window_ns AS INTEGER) AS window_index,
      sum(s.slept_ns) AS slept_ns
    FROM wb_pool_own AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS q
    WHERE s.pool_bytes IS NOT NULL
      AND in_time!(s.ts, b)
    GROUP BY s.task_id, s.bdi, s.cgroup_ino, 4
  ),
  total AS (
    SELECT s.task_id, s.bdi, s.cgroup_ino, sum(s.slept_ns) AS slept_ns
    FROM slept AS s
    GROUP BY s.task_id, s.bdi, s.cgroup_ino
  ),
  asked AS (
    SELECT DISTINCT
      s.window_index,
      coalesce(d.windows_count, 1) AS windows_count
    FROM slept AS s
    LEFT JOIN drain AS d ON d.window_index = s.window_index
  ),
  -- By number, so that each window before is found and not looked for.
  back(windows_count) AS (
    SELECT 0
    UNION ALL
    SELECT b.windows_count + 1
    FROM back AS b
    WHERE b.windows_count + 1 < (SELECT v.drain_most_count FROM wb_rule AS v)
  ),
  reached AS (
    SELECT a.window_index, a.window_index - b.windows_count AS before_index
    FROM asked AS a
    JOIN back AS b ON b.windows_count < a.windows_count
  ),
  -- What the machine dirtied, where that is more than its tasks are known to.
  around AS (
    SELECT
      r.window_index,
      max(
        coalesce(sum(w.bytes), 0), coalesce(sum(f.dirtied_bytes), 0)
      ) AS bytes
    FROM reached AS r
    LEFT JOIN whole AS w ON w.window_index = r.before_index
    LEFT JOIN wb_dirty_flow AS f ON f.window_index = r.before_index
    GROUP BY r.window_index
  ),
  added AS (
    SELECT
      a.window_index,
      p.bdi,
      p.cgroup_ino,
      sum(p.bytes) / a.bytes AS ratio
    FROM around AS a
    JOIN reached AS r ON r.window_index = a.window_index
    JOIN part AS p ON p.window_index = r.before_index
    WHERE a.bytes > 0
    GROUP BY a.window_index, a.bytes, p.bdi, p.cgroup_ino
  ),
  held AS (
    SELECT
      s.task_id,
      s.bdi,
      s.cgroup_ino,
      a.bdi AS holder_bdi,
      a.cgroup_ino AS holder_cgroup_ino,
      sum(s.slept_ns * a.ratio) / t.slept_ns AS added_ratio
    FROM slept AS s
    JOIN total AS t
      ON t.task_id = s.task_id
      AND t.bdi = s.bdi
      AND t.cgroup_ino = s.cgroup_ino
    JOIN added AS a ON a.window_index = s.window_index
    GROUP BY s.task_id, s.bdi, s.cgroup_ino, t.slept_ns, a.bdi, a.cgroup_ino
  )
SELECT
  h.task_id,
  h.bdi,
  h.cgroup_ino,
  h.holder_bdi,
  h.holder_cgroup_ino,
  h.added_ratio
FROM held AS h
UNION ALL
SELECT h.task_id, h.bdi, h.cgroup_ino, NULL, NULL, 1 - sum(h.added_ratio)
FROM held AS h
GROUP BY h.task_id, h.bdi, h.cgroup_ino
HAVING sum(h.added_ratio) < 1;
