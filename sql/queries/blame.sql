-- SPDX-License-Identifier: Apache-2.0
-- Fairness between writers.

-- @query    blame
-- @title    Whose pages filled the pool while a task was held up
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
-- @column   victim_tid INTEGER thread that was held up
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
      c.task_id,
      c.bdi,
      c.cgroup_ino,
      sum(c.slept_ns) AS slept_ns,
      sum(c.slept_ns * c.own_share_ratio) / sum(c.slept_ns) AS own_ratio,
      1.0 * sum(c.slept_ns * c.is_innocent)
        / nullif(
          sum(CASE WHEN c.is_innocent IS NOT NULL THEN c.slept_ns END), 0
        ) AS innocent_ratio
    FROM wb_pool_own AS c
    CROSS JOIN wb_bounds AS b
    WHERE c.pool_bytes IS NOT NULL AND in_time!(c.ts, b)
    GROUP BY c.task_id, c.bdi, c.cgroup_ino
  ),
  writer AS (
    SELECT
      d.bdi,
      coalesce(d.cgroup_ino, 1) AS cgroup_ino,
      coalesce(nullif(k.comm, 'tid ' || k.tid) || ' ' || k.tid, k.comm) AS task,
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
      w.bdi,
      w.cgroup_ino,
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
  h.holder_bdi,
  h.holder_cgroup_ino,
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
LEFT JOIN wb_pool_added AS a
  ON a.task_id = v.task_id
  AND a.bdi = v.bdi
  AND a.cgroup_ino = v.cgroup_ino
  AND a.holder_bdi IS h.holder_bdi
  AND a.holder_cgroup_ino IS h.holder_cgroup_ino
WHERE (p.bdi IS NULL OR v.bdi = p.bdi)
  AND (p.tid IS NULL OR k.tid = p.tid)
  AND (p.comm_glob IS NULL OR k.comm GLOB p.comm_glob)
  AND (p.cgroup_ino IS NULL OR v.cgroup_ino = p.cgroup_ino)
ORDER BY
  v.slept_ns DESC,
  k.tid,
  v.task_id,
  v.bdi,
  v.cgroup_ino,
  share_held_ratio DESC,
  h.holder_bdi,
  h.holder_cgroup_ino;
