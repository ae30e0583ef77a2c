-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    blame
-- @title    Whose dirty pages filled the pool while a task was throttled
-- @order    14
-- @summary  For each throttled task: which devices and cgroups held the dirty
--   pages that it waited for, and which of them added the pages.
-- @read     share_held is weighted by how long the task slept; the shares of a
--   task add up to 1, with a row of unknown (no holder) for what no event or
--   sample shows. A holder other than the task's own wb, and a high innocent,
--   mean that others held it up: alone it would not have been throttled. In a
--   memory cgroup's domain the pool is that of the cgroup. share_added is of
--   what was dirtied within the time that the pool takes to be written, by
--   windows.
-- @filters  range, bdi, tid, task, cgroup
-- @grain    task under a name, bdi, cgroup, holder; order throttled_ns
--   descending, share_held_ratio descending
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, sched:sched_switch
-- @column   victim_tid INTEGER throttled thread
-- @column   victim_comm TEXT its name
-- @column   victim_bdi TEXT that it writes to
-- @column   victim_cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   throttled_ns INTEGER how long the victim slept
-- @column   share_held_ratio REAL of the pool, by time
-- @column   share_added_ratio REAL of what was dirtied meanwhile; NULL = not
--   known
-- @column   own_share_ratio REAL of the pool, held by the victim's own wb
-- @column   innocent_ratio REAL of the time that the machine's limits held it
--   up, that in which its own wb held less than its share of free run; the
--   limits of its memory cgroup do not count. NULL = the events do not tell
-- @column   holder_tasks TEXT tasks that dirtied what the holder has, and their
--   share of it; NULL = not known
-- @metric   own_share_ratio neutral: how much of the data that this writer had
--   to wait for was its own disk's
-- @metric   innocent_ratio lower: how much of its waiting for the machine's
--   limits was the doing of others
-- @source   docs/findings.md
-- @cost     200
WITH
  victim AS (
    SELECT
      c.task_id, c.bdi, c.cgroup_ino,
      sum(c.slept_ns) AS slept_ns,
      sum(c.slept_ns * c.own_share_ratio) / sum(c.slept_ns) AS own_ratio,
      1.0 * sum(c.slept_ns * c.is_innocent)
        / nullif(
          sum(CASE WHEN c.is_innocent IS NOT NULL THEN c.slept_ns END), 0
        ) AS innocent_ratio
    FROM wb_pool AS c
    CROSS JOIN wb_bounds AS b
    WHERE c.pool_bytes IS NOT NULL AND in_time!(c.ts, b)
    GROUP BY c.task_id, c.bdi, c.cgroup_ino
  ),
  writer AS (
    SELECT
      d.bdi,
      coalesce(d.cgroup_ino, 1) AS cgroup_ino,
      task_name!(k) AS task,
      1.0 * d.estimate_bytes
        / nullif(
          sum(d.estimate_bytes) OVER (
            PARTITION BY d.bdi, coalesce(d.cgroup_ino, 1)
          ), 0
        ) AS share_ratio,
      row_number() OVER (
        PARTITION BY d.bdi, coalesce(d.cgroup_ino, 1)
        ORDER BY d.estimate_bytes DESC, d.task_id
      ) AS place
    FROM wb_task_dirtied AS d
    JOIN wb_task AS k ON k.task_id = d.task_id
    WHERE d.is_incidental = 0 AND d.basis <> 'bound'
  ),
  told AS (
    SELECT
      w.bdi, w.cgroup_ino,
      max(
        CASE w.place
          WHEN 1 THEN w.task || ' '
            || CAST(100 * w.share_ratio + 0.5 AS INTEGER) || ' %'
        END
      )
        || coalesce(
          ', ' || max(
            CASE w.place
              WHEN 2 THEN w.task || ' '
                || CAST(100 * w.share_ratio + 0.5 AS INTEGER) || ' %'
            END
          ),
          ''
        )
        || CASE WHEN count(*) > 2 THEN ' and ' || (count(*) - 2) || ' more'
          ELSE ''
        END AS tasks
    FROM writer AS w
    GROUP BY w.bdi, w.cgroup_ino
  )
SELECT
  k.tid AS victim_tid,
  k.comm AS victim_comm,
  v.bdi AS victim_bdi,
  v.cgroup_ino AS victim_cgroup_ino,
  h.holder_bdi, h.holder_cgroup_ino,
  v.slept_ns AS throttled_ns,
  1.0 * h.held_ns / v.slept_ns AS share_held_ratio,
  a.added_ratio AS share_added_ratio,
  v.own_ratio AS own_share_ratio,
  v.innocent_ratio,
  t.tasks AS holder_tasks,
  h.basis
FROM victim AS v
CROSS JOIN wb_params AS p
JOIN wb_task AS k ON k.task_id = v.task_id
JOIN wb_pool_blame AS h
  ON h.task_id = v.task_id AND h.bdi = v.bdi AND h.cgroup_ino = v.cgroup_ino
LEFT JOIN told AS t
  ON t.bdi = h.holder_bdi AND t.cgroup_ino = h.holder_cgroup_ino
LEFT JOIN _pool_added AS a
  ON a.task_id = v.task_id
  AND a.bdi = v.bdi
  AND a.cgroup_ino = v.cgroup_ino
  AND a.holder_bdi IS h.holder_bdi
  AND a.holder_cgroup_ino IS h.holder_cgroup_ino
WHERE of_wb!(v, p)
  AND of_task!(k, p)
ORDER BY
  v.slept_ns DESC,
  k.tid, v.task_id, v.bdi, v.cgroup_ino,
  share_held_ratio DESC,
  h.holder_bdi,
  h.holder_cgroup_ino;

-- @view     _pool_added
-- @summary  Which tasks dirtied pages while each throttled task slept, and in
--   the time before that the pool takes to be written: shares of what the
--   machine dirtied, by windows, weighted by how long the task slept in each.
-- @grain    task under a name, bdi, cgroup, holder; order task_id
-- @column   holder_bdi TEXT whose pages; NULL = unknown
-- @column   holder_cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   added_ratio REAL its share of what was dirtied
CREATE VIEW _pool_added AS
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
    FROM throughput AS f
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
      s.task_id, s.bdi, s.cgroup_ino,
      CAST((s.ts - b.start_ts) / q.window_ns AS INTEGER) AS window_index,
      sum(s.slept_ns) AS slept_ns
    FROM wb_pool AS s
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
    LEFT JOIN wb_window AS i ON i.window_index = r.before_index
    LEFT JOIN throughput AS f ON f.window_start_ns = i.window_start_ns
    GROUP BY r.window_index
  ),
  added AS (
    SELECT
      a.window_index, p.bdi, p.cgroup_ino,
      sum(p.bytes) / a.bytes AS ratio
    FROM around AS a
    JOIN reached AS r ON r.window_index = a.window_index
    JOIN part AS p ON p.window_index = r.before_index
    WHERE a.bytes > 0
    GROUP BY a.window_index, a.bytes, p.bdi, p.cgroup_ino
  ),
  held AS (
    SELECT
      s.task_id, s.bdi, s.cgroup_ino,
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
  h.task_id, h.bdi, h.cgroup_ino, h.holder_bdi, h.holder_cgroup_ino,
  h.added_ratio
FROM held AS h
UNION ALL
SELECT h.task_id, h.bdi, h.cgroup_ino, NULL, NULL, 1 - sum(h.added_ratio)
FROM held AS h
GROUP BY h.task_id, h.bdi, h.cgroup_ino
HAVING sum(h.added_ratio) < 1;
