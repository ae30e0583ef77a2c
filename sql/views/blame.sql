-- SPDX-License-Identifier: Apache-2.0
-- Whose pages filled the pool that a throttled task waited for.

-- @view     wb_pool_share
-- @summary  Whose dirty pages filled the pool that each throttled task waited
--   for: the machine's, or its memory cgroup's. The event tells the pool and
--   what the task's own wb holds of it; what others hold is their last event or
--   sample, if it is not too old (wb_rule.stale_ns), and the rest is unknown.
-- @grain    sleep of a throttled task, holder; order seq, share_ratio
-- @needs    _pool_sleep, _pool_wb, _pool_other, wb_rule
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   ts INTEGER ns, trace clock, of the event
-- @column   slept_ns INTEGER how long the task slept after it
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT that the task writes to
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_innocent INTEGER 1: the task's own wb held less than its share
--   of free run, so that it would not have been throttled alone; NULL = the
--   events do not tell
-- @column   pool_bytes INTEGER dirty pages of the domain that throttled
-- @column   holder_bdi TEXT whose pages; NULL = unknown
-- @column   holder_cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   is_own INTEGER 1: the task's own wb; 0: another one, or unknown
-- @column   held_bytes REAL what it held of the pool
-- @column   share_ratio REAL of the pool; those of a sleep add up to 1
-- @column   basis TEXT own: by the event itself; events: by another task's
--   event; samples: by statistics of debugfs; unknown
-- @source   mm/page-writeback.c balance_dirty_pages(): freerun and the wb's
--   share of it
-- @materialize
CREATE VIEW wb_pool_share AS
WITH
  -- Each other wb of the pool beside each sleep, with its last sample.
  points AS (
    SELECT s.seq, s.ts, w.wb_id, NULL AS sample_id
    FROM _pool_sleep AS s
    CROSS JOIN _pool_wb AS w
    WHERE w.wb_id <> s.wb_id
      AND (
        s.domain IS NULL
        OR s.domain <> 'memcg'
        OR w.cgroup_ino = s.cgroup_ino
      )
    UNION ALL
    SELECT NULL, p.ts, p.wb_id, p.sample_id
    FROM _pool_other AS p
  ),
  reached AS (
    SELECT
      p.seq,
      p.ts,
      p.wb_id,
      max(p.sample_id) OVER (
        PARTITION BY p.wb_id ORDER BY p.ts, p.seq IS NOT NULL
        ROWS UNBOUNDED PRECEDING
      ) AS sample_id
    FROM points AS p
  ),
  other AS (
    SELECT r.seq, r.wb_id, p.wb_dirty_bytes AS held_bytes, p.basis
    FROM reached AS r
    CROSS JOIN wb_rule AS v
    JOIN _pool_other AS p ON p.sample_id = r.sample_id
    WHERE r.seq IS NOT NULL
      AND r.ts - p.ts <= v.stale_ns
      AND p.wb_dirty_bytes > 0
  ),
  known AS (
    SELECT o.seq, sum(o.held_bytes) AS held_bytes
    FROM other AS o
    GROUP BY o.seq
  ),
  -- The counters are read one after the other, so the parts can be more than
  -- the whole.
  pool AS (
    SELECT
      s.*,
      min(s.wb_dirty_bytes, s.pool_bytes) AS own_bytes,
      max(
        1.0,
        1.0 * (
          min(s.wb_dirty_bytes, s.pool_bytes) + coalesce(k.held_bytes, 0)
        ) / s.pool_bytes
      ) AS too_much,
      coalesce(k.held_bytes, 0) AS other_bytes
    FROM _pool_sleep AS s
    LEFT JOIN known AS k ON k.seq = s.seq
  ),
  held AS (
    SELECT
      p.seq,
      p.wb_id,
      1 AS is_own,
      p.own_bytes / p.too_much AS held_bytes,
      'own' AS basis
    FROM pool AS p
    UNION ALL
    SELECT p.seq, o.wb_id, 0, o.held_bytes / p.too_much, o.basis
    FROM other AS o
    JOIN pool AS p ON p.seq = o.seq
    UNION ALL
    SELECT p.seq, NULL, 0, p.pool_bytes - p.own_bytes - p.other_bytes, 'unknown'
    FROM pool AS p
    WHERE p.pool_bytes > p.own_bytes + p.other_bytes
  )
SELECT
  s.seq,
  s.ts,
  s.slept_ns,
  s.task_id,
  s.bdi,
  s.cgroup_ino,
  s.is_innocent,
  s.pool_bytes,
  w.bdi AS holder_bdi,
  w.cgroup_ino AS holder_cgroup_ino,
  h.is_own,
  1.0 * h.held_bytes AS held_bytes,
  1.0 * h.held_bytes / s.pool_bytes AS share_ratio,
  h.basis
FROM held AS h
JOIN _pool_sleep AS s ON s.seq = h.seq
LEFT JOIN _pool_wb AS w ON w.wb_id = h.wb_id;

-- @view     wb_pool_window
-- @shared
-- @summary  Whose dirty pages filled the machine's pool in each window.
-- @grain    window, holder; order window_index, bdi, cgroup_ino
-- @needs    _pool_wb, _pool_sample, wb_dirty_window, wb_window, wb_bounds,
--   wb_params, wb_rule
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   window_index INTEGER of wb_window
-- @column   window_start_ns INTEGER trace clock
-- @column   bdi TEXT whose pages; NULL = unknown
-- @column   cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   held_bytes REAL mean of what it held; NULL = nothing tells the pool
-- @column   share_ratio REAL of the pool; those of a window add up to 1
-- @column   pool_bytes INTEGER mean of the machine's dirty pages
CREATE VIEW wb_pool_window AS
WITH
  placed AS (
    SELECT
      (p.ts - b.start_ts) / q.window_ns AS window_index,
      p.wb_id,
      avg(p.wb_dirty_bytes) AS held_bytes,
      max(p.sample_id) AS last_sample_id
    FROM _pool_sample AS p
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS q
    WHERE p.ts >= b.start_ts AND p.ts < b.end_ts
    GROUP BY 1, p.wb_id
  ),
  -- A window without a sample goes by the last one, if that is not too old.
  cell AS (
    SELECT
      w.window_index,
      w.window_start_ns,
      k.wb_id,
      d.held_bytes,
      max(d.last_sample_id) OVER (
        PARTITION BY k.wb_id ORDER BY w.window_index ROWS UNBOUNDED PRECEDING
      ) AS last_sample_id
    FROM wb_window AS w
    CROSS JOIN _pool_wb AS k
    LEFT JOIN placed AS d
      ON d.window_index = w.window_index AND d.wb_id = k.wb_id
  ),
  held AS (
    SELECT
      c.window_index,
      c.wb_id,
      coalesce(
        c.held_bytes,
        CASE WHEN c.window_start_ns - p.ts <= v.stale_ns
          THEN p.wb_dirty_bytes
        END
      ) AS held_bytes
    FROM cell AS c
    CROSS JOIN wb_rule AS v
    JOIN _pool_sample AS p ON p.sample_id = c.last_sample_id
  ),
  known AS (
    SELECT h.window_index, sum(h.held_bytes) AS held_bytes
    FROM held AS h
    GROUP BY h.window_index
  ),
  pool AS (
    SELECT
      d.window_index,
      d.window_start_ns,
      d.dirty_bytes AS pool_bytes,
      max(1.0, 1.0 * k.held_bytes / nullif(d.dirty_bytes, 0)) AS too_much,
      k.held_bytes
    FROM wb_dirty_window AS d
    LEFT JOIN known AS k ON k.window_index = d.window_index
    WHERE d.dirty_bytes > 0
  )
SELECT
  p.window_index,
  p.window_start_ns,
  w.bdi,
  w.cgroup_ino,
  h.held_bytes / p.too_much AS held_bytes,
  h.held_bytes / p.too_much / p.pool_bytes AS share_ratio,
  p.pool_bytes
FROM pool AS p
JOIN held AS h ON h.window_index = p.window_index
JOIN _pool_wb AS w ON w.wb_id = h.wb_id
WHERE h.held_bytes > 0
UNION ALL
SELECT
  p.window_index,
  p.window_start_ns,
  NULL,
  NULL,
  p.pool_bytes - coalesce(p.held_bytes, 0),
  1 - 1.0 * coalesce(p.held_bytes, 0) / p.pool_bytes,
  p.pool_bytes
FROM pool AS p
WHERE p.pool_bytes > coalesce(p.held_bytes, 0);

-- @view     wb_pool_added
-- @shared
-- @summary  Who dirtied pages while each throttled task was held up, and in the
--   time before that the pool takes to be written: shares of what the machine
--   dirtied, by windows, weighted by how long the task slept in each.
-- @grain    task under a name, bdi, cgroup, holder; order task_id
-- @needs    wb_pool_share, wb_dirtied_part, wb_dirty_flow, wb_dirty_window,
--   wb_bounds, wb_params, wb_units
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT that the task writes to
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   holder_bdi TEXT whose pages; NULL = unknown
-- @column   holder_cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   added_ratio REAL its share of what was dirtied
CREATE VIEW wb_pool_added AS
WITH
  part AS (
    SELECT
      p.window_index,
      p.bdi,
      coalesce(p.cgroup_ino, 1) AS cgroup_ino,
      sum(p.dirtied_bytes) AS bytes
    FROM wb_dirtied_part AS p
    GROUP BY p.window_index, p.bdi, coalesce(p.cgroup_ino, 1)
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
  -- Windows that the pool takes to be written, up to 16 of them.
  drain AS (
    SELECT
      d.window_index,
      min(
        16,
        1 + CAST(
          d.dirty_bytes * 1.0 * u.second_ns / s.bytes_per_s / q.window_ns
          AS INTEGER
        )
      ) AS windows_count
    FROM wb_dirty_window AS d
    CROSS JOIN speed AS s
    CROSS JOIN wb_params AS q
    CROSS JOIN wb_units AS u
  ),
  slept AS (
    SELECT
      s.task_id,
      s.bdi,
      s.cgroup_ino,
      (s.ts - b.start_ts) / q.window_ns AS window_index,
      sum(s.slept_ns) AS slept_ns
    FROM wb_pool_share AS s
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS q
    WHERE s.is_own = 1 AND s.ts >= b.start_ts AND s.ts < b.end_ts
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
  -- What the machine dirtied, where that is more than its tasks are known to.
  around AS (
    SELECT
      a.window_index,
      a.windows_count,
      max(
        coalesce(
          (
            SELECT sum(w.bytes)
            FROM whole AS w
            WHERE w.window_index <= a.window_index
              AND w.window_index > a.window_index - a.windows_count
          ), 0
        ),
        coalesce(
          (
            SELECT sum(f.dirtied_bytes)
            FROM wb_dirty_flow AS f
            WHERE f.window_index <= a.window_index
              AND f.window_index > a.window_index - a.windows_count
          ), 0
        )
      ) AS bytes
    FROM asked AS a
  ),
  added AS (
    SELECT
      a.window_index,
      p.bdi,
      p.cgroup_ino,
      sum(p.bytes) / a.bytes AS ratio
    FROM around AS a
    JOIN part AS p
      ON p.window_index <= a.window_index
      AND p.window_index > a.window_index - a.windows_count
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

-- @view     _pool_sleep
-- @summary  Sleeps of throttled tasks, with the pool that each waited for.
-- @grain    balance_dirty_pages event that a task slept after; order seq
-- @key      seq
-- @needs    wb_throttle, _pool_wb
-- @events   writeback:balance_dirty_pages
-- @column   seq INTEGER of the event
-- @column   ts INTEGER ns, of the event
-- @column   task_id INTEGER of wb_task
-- @column   wb_id INTEGER of _pool_wb: the task's own
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   domain TEXT as in wb_throttle
-- @column   slept_ns INTEGER how long
-- @column   pool_bytes INTEGER dirty pages of the domain
-- @column   wb_dirty_bytes INTEGER of the task's own wb
-- @column   is_innocent INTEGER as in wb_pool_share
-- @materialize
CREATE VIEW _pool_sleep AS
SELECT
  t.seq,
  t.ts,
  t.task_id,
  w.wb_id,
  t.bdi,
  w.cgroup_ino,
  t.domain,
  t.slept_ns,
  t.dirty_bytes AS pool_bytes,
  t.wb_dirty_bytes,
  t.wb_dirty_bytes * t.setpoint_bytes
    < 1.0 * (2 * t.setpoint_bytes - t.limit_bytes) * t.wb_setpoint_bytes
    AS is_innocent
FROM wb_throttle AS t
JOIN _pool_wb AS w
  ON w.bdi = t.bdi AND w.cgroup_ino = coalesce(t.cgroup_ino, 1)
WHERE t.is_step = 1
  AND t.slept_ns > 0
  AND t.dirty_bytes > 0
  AND t.wb_dirty_bytes IS NOT NULL;

-- @view     _pool_wb
-- @summary  The wbs that hold dirty pages, numbered.
-- @grain    bdi, cgroup; order wb_id
-- @key      wb_id
-- @needs    wb_throttle_cost, wb_bdi_sample
-- @events   writeback:balance_dirty_pages
-- @column   wb_id INTEGER 1, 2, 3 ...
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @materialize
CREATE VIEW _pool_wb AS
WITH
  seen AS (
    SELECT t.bdi, coalesce(t.cgroup_ino, 1) AS cgroup_ino
    FROM wb_throttle_cost AS t
    UNION
    SELECT s.bdi, coalesce(s.cgroup_ino, 1)
    FROM wb_bdi_sample AS s
    WHERE s.wb_dirty_bytes > 0
  )
SELECT
  row_number() OVER (ORDER BY s.bdi, s.cgroup_ino) AS wb_id,
  s.bdi,
  s.cgroup_ino
FROM seen AS s;

-- @view     _pool_sample
-- @summary  _pool_told, numbered.
-- @grain    sample; order sample_id
-- @key      sample_id
-- @needs    _pool_told
-- @events   writeback:balance_dirty_pages
-- @column   sample_id INTEGER grows with the time within a wb
-- @column   wb_id INTEGER of _pool_wb
-- @column   ts INTEGER ns, trace clock
-- @column   wb_dirty_bytes INTEGER dirty pages and those under writeback
-- @column   basis TEXT events or samples
-- @materialize
CREATE VIEW _pool_sample AS
SELECT
  row_number() OVER (ORDER BY t.wb_id, t.ts, t.basis DESC) AS sample_id,
  t.wb_id,
  t.ts,
  t.wb_dirty_bytes,
  t.basis
FROM _pool_told AS t;

-- @view     _pool_other
-- @summary  _pool_sample where there is more than one wb; empty else, as no wb
--   has another beside it.
-- @grain    sample; order sample_id
-- @key      sample_id
-- @needs    _pool_told, _pool_wb
-- @events   writeback:balance_dirty_pages
-- @column   sample_id INTEGER grows with the time within a wb
-- @column   wb_id INTEGER of _pool_wb
-- @column   ts INTEGER ns, trace clock
-- @column   wb_dirty_bytes INTEGER dirty pages and those under writeback
-- @column   basis TEXT events or samples
-- @materialize
CREATE VIEW _pool_other AS
SELECT
  row_number() OVER (ORDER BY t.wb_id, t.ts, t.basis DESC) AS sample_id,
  t.wb_id,
  t.ts,
  t.wb_dirty_bytes,
  t.basis
FROM _pool_wb AS w
CROSS JOIN _pool_told AS t
WHERE w.wb_id = 2;

-- @view     _pool_told
-- @summary  What each wb held, by the events of its own tasks while they are
--   throttled, and by the samples of debugfs.
-- @grain    sample; order wb_id, ts
-- @needs    wb_throttle, wb_bdi_sample, _pool_wb
-- @events   writeback:balance_dirty_pages
-- @column   wb_id INTEGER of _pool_wb
-- @column   ts INTEGER ns, trace clock
-- @column   wb_dirty_bytes INTEGER dirty pages and those under writeback
-- @column   basis TEXT events or samples
CREATE VIEW _pool_told AS
WITH
  -- From 6.10 on a bdi's own row is the sum of those of its cgroups.
  split AS (
    SELECT DISTINCT s.bdi
    FROM wb_bdi_sample AS s
    WHERE s.cgroup_ino IS NOT NULL
  ),
  told AS (
    SELECT t.ts, t.bdi, coalesce(t.cgroup_ino, 1) AS cgroup_ino,
      t.wb_dirty_bytes, 'events' AS basis
    FROM wb_throttle AS t
    WHERE t.is_step = 1 AND t.wb_dirty_bytes IS NOT NULL
    UNION ALL
    SELECT s.ts, s.bdi, coalesce(s.cgroup_ino, 1), s.wb_dirty_bytes, 'samples'
    FROM wb_bdi_sample AS s
    WHERE s.wb_dirty_bytes IS NOT NULL
      AND (
        s.cgroup_ino IS NOT NULL OR s.bdi NOT IN (SELECT p.bdi FROM split AS p)
      )
  )
SELECT w.wb_id, t.ts, t.wb_dirty_bytes, t.basis
FROM told AS t
JOIN _pool_wb AS w ON w.bdi = t.bdi AND w.cgroup_ino = t.cgroup_ino;
