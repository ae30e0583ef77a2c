-- SPDX-License-Identifier: Apache-2.0
-- When each throttled task dirtied what.

-- @view     wb_dirtied_part
-- @summary  When each throttled task dirtied what, by the basis of
--   wb_task_dirtied. What has no time of its own is shared out to the task's
--   calls in free run and stands at the end of their window; the parts add up
--   to the whole.
-- @grain    charge, or window with calls in free run; order task_id, ts
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, wbscope:balance_dirty_pages_entry
-- @column   window_index INTEGER of wb_window
-- @column   ts INTEGER ns, trace clock: it was dirtied before
-- @column   dirtied_bytes REAL what it dirtied
CREATE VIEW wb_dirtied_part AS
SELECT
  (p.ts - b.start_ts) / q.window_ns AS window_index,
  p.ts, d.task_id, d.tid, d.bdi, d.cgroup_ino,
  1.0 * p.dirtied_bytes AS dirtied_bytes
FROM wb_task_dirtied AS d
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS q
JOIN wb_task AS k ON k.task_id = d.task_id
JOIN wb_probe_call AS p
  ON p.tid = k.tid
  AND p.seq >= k.from_seq
  AND p.seq < k.until_seq
  AND p.bdi = d.bdi
  AND coalesce(p.cgroup_ino, 0) = coalesce(d.cgroup_ino, 0)
WHERE d.basis = 'probe' AND in_time!(p.ts, b)
UNION ALL
SELECT
  (t.ts - b.start_ts) / q.window_ns,
  t.ts, d.task_id, d.tid, d.bdi, d.cgroup_ino, t.accounted_bytes
    * CASE
      WHEN d.basis = 'bound' THEN 1.0
      -- Charged for others, or no call in free run to share it out to.
      WHEN d.estimate_bytes < d.charged_bytes
        OR coalesce(d.free_calls_count, 0) = 0
        THEN 1.0 * d.estimate_bytes / d.charged_bytes
      ELSE 1.0
    END
FROM wb_throttle AS t
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_params AS q
JOIN wb_task_dirtied AS d
  ON d.task_id = t.task_id
  AND d.bdi = t.bdi
  AND coalesce(d.cgroup_ino, 0) = coalesce(t.cgroup_ino, 0)
  AND d.basis <> 'probe'
WHERE t.is_step = 1
  AND t.accounted_bytes > 0
  AND in_time!(t.ts, b)
UNION ALL
SELECT
  c.window_index,
  min(w.window_end_ns, b.end_ts, b.last_ts + 1) - 1,
  d.task_id, d.tid, d.bdi, d.cgroup_ino,
  c.share_ratio * (d.estimate_bytes - d.charged_bytes)
FROM _dirtied_free_call AS c
CROSS JOIN wb_bounds AS b
JOIN wb_window AS w ON w.window_index = c.window_index
JOIN wb_task_dirtied AS d ON d.task_id = c.task_id
WHERE d.basis NOT IN ('probe', 'bound')
  AND d.estimate_bytes > d.charged_bytes;

-- @view     _dirtied_free_call
-- @summary  Which part of its calls in free run each throttled task made in
--   each window.
-- @grain    window, task under a name; order window_index, task_id
-- @optional writeback:global_dirty_state
-- @column   share_ratio REAL of the task's calls in free run
-- @materialize
-- @cost     460
CREATE VIEW _dirtied_free_call AS
WITH
  dirtier AS (
    SELECT DISTINCT a.task_id, k.tid, k.from_seq, k.until_seq
    FROM wb_throttle_total AS a
    JOIN wb_task AS k ON k.task_id = a.task_id
  ),
  -- Whether a tid is one task with one name.
  plain AS (
    SELECT 1 AS is_plain
    WHERE NOT EXISTS (
      SELECT t.tid FROM wb_task AS t GROUP BY t.tid HAVING count(*) > 1
    )
  ),
  -- Of most runs. By window, so that only its records are sorted at a time:
  -- a subquery gives one value, so it is JSON.
  simple AS (
    SELECT e.window_index, CAST(j.key AS INTEGER) AS tid, j.value AS calls
    FROM wb_window AS e
    CROSS JOIN json_each(
      (
        SELECT json_group_object(k.tid, k.calls)
        FROM (
          SELECT g.tid, count(*) AS calls
          FROM raw_global_dirty_state AS g
          WHERE g.seq >= e.state_first_seq
            AND g.seq < e.state_after_seq
            AND g.tid IS NOT NULL
          GROUP BY g.tid
        ) AS k
      )
    ) AS j
    WHERE EXISTS (SELECT 1 FROM plain)
    UNION ALL
    SELECT e.window_index, CAST(j.key AS INTEGER), -j.value
    FROM wb_window AS e
    CROSS JOIN json_each(
      (
        SELECT json_group_object(k.tid, k.calls)
        FROM (
          SELECT r.tid, count(*) AS calls
          FROM raw_balance_dirty_pages AS r
          WHERE r.seq >= e.throttle_first_seq
            AND r.seq < e.throttle_after_seq
            AND r.tid IS NOT NULL
          GROUP BY r.tid
        ) AS k
      )
    ) AS j
    WHERE EXISTS (SELECT 1 FROM plain)
      AND EXISTS (SELECT 1 FROM raw_global_dirty_state)
  ),
  seen AS (
    SELECT g.tid, g.seq, g.ts, 1 AS calls
    FROM raw_global_dirty_state AS g
    WHERE NOT EXISTS (SELECT 1 FROM plain)
    UNION ALL
    SELECT r.tid, r.seq, r.ts, -1
    FROM raw_balance_dirty_pages AS r
    WHERE NOT EXISTS (SELECT 1 FROM plain)
      AND EXISTS (SELECT 1 FROM raw_global_dirty_state)
  ),
  counted AS (
    SELECT s.window_index, d.task_id, sum(s.calls) AS calls_count
    FROM simple AS s
    JOIN dirtier AS d ON d.tid = s.tid
    GROUP BY s.window_index, d.task_id
    UNION ALL
    SELECT
      (s.ts - b.start_ts) / p.window_ns,
      d.task_id,
      sum(s.calls)
    FROM seen AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    CROSS JOIN dirtier AS d
      ON task_of!(d, s)
    WHERE in_time!(s.ts, b)
    GROUP BY 1, d.task_id
  )
SELECT
  c.window_index, c.task_id,
  1.0 * c.calls_count / sum(c.calls_count) OVER (PARTITION BY c.task_id)
    AS share_ratio
FROM counted AS c
WHERE c.calls_count > 0;
