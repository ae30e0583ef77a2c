-- SPDX-License-Identifier: Apache-2.0
-- Whose pages filled the pool that a throttled task waited for.

-- @view     wb_pool_share
-- @summary  Whose dirty pages filled the pool that each throttled task waited
--   for: the machine's, or its memory cgroup's. The event tells the pool and
--   what the task's own wb holds of it; what others hold is their last event or
--   sample, if it is not too old (wb_rule.stale_ns), and the rest is unknown.
-- @grain    sleep of a throttled task, holder; order seq, share_ratio
-- @needs    _pool_own, _pool_held, _pool_wb
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
SELECT
  p.seq,
  p.ts,
  p.slept_ns,
  p.task_id,
  p.bdi,
  p.cgroup_ino,
  p.is_innocent,
  p.pool_bytes,
  p.bdi AS holder_bdi,
  p.cgroup_ino AS holder_cgroup_ino,
  1 AS is_own,
  1.0 * (p.own_bytes / p.too_much) AS held_bytes,
  p.own_share_ratio AS share_ratio,
  'own' AS basis
FROM _pool_own AS p
WHERE p.pool_bytes IS NOT NULL
UNION ALL
SELECT
  p.seq,
  p.ts,
  p.slept_ns,
  p.task_id,
  p.bdi,
  p.cgroup_ino,
  p.is_innocent,
  p.pool_bytes,
  w.bdi,
  w.cgroup_ino,
  0,
  1.0 * (h.held_bytes / p.too_much),
  1.0 * (h.held_bytes / p.too_much) / p.pool_bytes,
  h.basis
FROM _pool_held AS h
JOIN _pool_own AS p ON p.seq = h.seq
JOIN _pool_wb AS w ON w.wb_id = h.wb_id
UNION ALL
SELECT
  p.seq,
  p.ts,
  p.slept_ns,
  p.task_id,
  p.bdi,
  p.cgroup_ino,
  p.is_innocent,
  p.pool_bytes,
  NULL,
  NULL,
  0,
  1.0 * (p.pool_bytes - p.own_bytes - p.other_bytes),
  1.0 * (p.pool_bytes - p.own_bytes - p.other_bytes) / p.pool_bytes,
  'unknown'
FROM _pool_own AS p
WHERE p.pool_bytes > p.own_bytes + p.other_bytes;

-- @view     wb_pool_own
-- @shared
-- @summary  The pool that each throttled task waited for, and what its own wb
--   held of it.
-- @grain    sleep of a throttled task; order seq
-- @needs    _pool_own
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   ts INTEGER ns, trace clock, of the event
-- @column   slept_ns INTEGER how long the task slept after it
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT that the task writes to
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_innocent INTEGER as in wb_pool_share
-- @column   pool_bytes INTEGER dirty pages of the domain; NULL = the event does
--   not tell what its wb holds of them
-- @column   own_bytes INTEGER of its own wb
-- @column   other_bytes INTEGER of the other wbs that are known
-- @column   too_much REAL by how much the parts are more than the whole, as the
--   counters are read one after the other; 1 = they are not
-- @column   own_share_ratio REAL of the pool, held by its own wb
CREATE VIEW wb_pool_own AS
SELECT
  p.seq,
  p.ts,
  p.slept_ns,
  p.task_id,
  p.bdi,
  p.cgroup_ino,
  p.is_innocent,
  p.pool_bytes,
  p.own_bytes,
  p.other_bytes,
  p.too_much,
  p.own_share_ratio
FROM _pool_own AS p;

-- @view     wb_pool_holder
-- @shared
-- @summary  Which wb, other than the task's own, held most of the pool that
--   each throttled task waited for.
-- @grain    sleep of a throttled task with another wb that is known; order seq
-- @key      seq
-- @needs    _pool_held, _pool_wb
-- @events   writeback:balance_dirty_pages
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   bdi TEXT whose pages
-- @column   cgroup_ino INTEGER of that wb
-- @column   held_bytes INTEGER by its last event or sample
-- @materialize
CREATE VIEW wb_pool_holder AS
WITH
  ranked AS (
    SELECT
      h.seq,
      h.wb_id,
      h.held_bytes,
      row_number() OVER (
        PARTITION BY h.seq ORDER BY h.held_bytes DESC, h.wb_id
      ) AS place
    FROM _pool_held AS h
  )
SELECT r.seq, w.bdi, w.cgroup_ino, r.held_bytes
FROM ranked AS r
JOIN _pool_wb AS w ON w.wb_id = r.wb_id
WHERE r.place = 1;

-- @view     wb_pool_rival
-- @shared
-- @summary  Where pages of others can only be those of another cgroup on the
--   same device, as no other device was written to: a task that ended, or that
--   waits for nothing, tells no more of what its wb holds.
-- @grain    wb whose tasks were throttled, or which was sampled; order bdi,
--   cgroup_ino
-- @needs    _pool_wb, wb_flushed, wb_block_done, wb_stack, wb_rule, wb_units
-- @events   writeback:balance_dirty_pages
-- @optional writeback:writeback_start, writeback:writeback_written,
--   block:block_rq_complete
-- @column   bdi TEXT of the wb
-- @column   cgroup_ino INTEGER that owns it; 1 = root
-- @column   rival_cgroup_ino INTEGER the other cgroup; NULL = there are several
-- @materialize
CREATE VIEW wb_pool_rival AS
WITH
  wrote AS (
    SELECT w.bdi, w.cgroup_ino FROM _pool_wb AS w
    UNION
    SELECT f.bdi, f.cgroup_ino
    FROM wb_flushed AS f
    CROSS JOIN wb_rule AS v
    WHERE f.pages_count >= v.few_pages_count
    UNION
    -- Who calls fsync writes without a flusher.
    SELECT d.device, NULL
    FROM wb_block_done AS d
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    WHERE d.op = 'write'
    GROUP BY d.device, v.few_pages_count, u.page_bytes
    HAVING sum(d.bytes) >= v.few_pages_count * u.page_bytes
  ),
  -- What lies on the same disk is written to with it.
  same AS (
    SELECT k.bdi, k.disk AS other_bdi FROM wb_stack AS k
    UNION
    SELECT k.disk, k.bdi FROM wb_stack AS k
    UNION
    SELECT k.bdi, o.bdi
    FROM wb_stack AS k
    JOIN wb_stack AS o ON o.disk = k.disk
  ),
  device AS (
    SELECT DISTINCT w.bdi FROM wrote AS w
  ),
  lone AS (
    SELECT d.bdi
    FROM device AS d
    WHERE NOT EXISTS (
      SELECT 1
      FROM device AS o
      WHERE o.bdi <> d.bdi
        AND NOT EXISTS (
          SELECT 1 FROM same AS s WHERE s.bdi = d.bdi AND s.other_bdi = o.bdi
        )
    )
  ),
  -- All wbs of a device at once: there may be thousands.
  owned AS (
    SELECT
      w.bdi,
      count(w.cgroup_ino) AS cgroups_count,
      min(w.cgroup_ino) AS low_ino,
      max(w.cgroup_ino) AS high_ino
    FROM wrote AS w
    GROUP BY w.bdi
  )
SELECT
  w.bdi,
  w.cgroup_ino,
  CASE o.cgroups_count
    WHEN 2
      THEN CASE w.cgroup_ino
        WHEN o.low_ino THEN o.high_ino
        ELSE o.low_ino
      END
  END AS rival_cgroup_ino
FROM _pool_wb AS w
JOIN lone AS l ON l.bdi = w.bdi
JOIN owned AS o ON o.bdi = w.bdi
WHERE o.cgroups_count > 1 AND w.cgroup_ino IS NOT NULL;

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
-- @materialize
CREATE VIEW wb_pool_window AS
WITH
  placed AS (
    SELECT
      -- Without a type no index would find it.
      CAST((p.ts - b.start_ts) / q.window_ns AS INTEGER) AS window_index,
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
  1.0 * (p.pool_bytes - coalesce(p.held_bytes, 0)),
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
      CAST((s.ts - b.start_ts) / q.window_ns AS INTEGER) AS window_index,
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
  -- By number, so that each window before is found and not looked for.
  back(windows_count) AS (
    SELECT 0
    UNION ALL
    SELECT b.windows_count + 1
    FROM back AS b
    WHERE b.windows_count < 15
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

-- @view     _pool_own
-- @summary  wb_pool_own.
-- @grain    sleep of a throttled task; order seq
-- @needs    wb_throttle_cause, _pool_held
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   ts INTEGER ns, trace clock, of the event
-- @column   slept_ns INTEGER how long the task slept after it
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT that the task writes to
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_innocent INTEGER as in wb_pool_share
-- @column   pool_bytes INTEGER dirty pages of the domain; NULL = the event does
--   not tell what its wb holds of them
-- @column   own_bytes INTEGER of its own wb
-- @column   other_bytes INTEGER of the other wbs that are known
-- @column   too_much REAL by how much the parts are more than the whole, as the
--   counters are read one after the other; 1 = they are not
-- @column   own_share_ratio REAL of the pool, held by its own wb
CREATE VIEW _pool_own AS
WITH
  known AS (
    SELECT h.seq, sum(h.held_bytes) AS held_bytes
    FROM _pool_held AS h
    GROUP BY h.seq
  ),
  pool AS (
    SELECT
      c.*,
      coalesce(k.held_bytes, 0) AS other_bytes,
      CASE WHEN c.dirty_bytes > 0 AND c.wb_dirty_bytes IS NOT NULL
        THEN c.dirty_bytes
      END AS pool_bytes,
      min(c.wb_dirty_bytes, c.dirty_bytes) AS own_bytes
    FROM wb_throttle_cause AS c
    LEFT JOIN known AS k ON k.seq = c.seq
  ),
  judged AS (
    SELECT
      p.*,
      max(1.0, 1.0 * (p.own_bytes + p.other_bytes) / p.pool_bytes) AS too_much
    FROM pool AS p
  )
SELECT
  j.seq,
  j.ts,
  j.slept_ns,
  j.task_id,
  j.bdi,
  coalesce(j.cgroup_ino, 1) AS cgroup_ino,
  CASE WHEN j.pool_bytes IS NOT NULL
    THEN j.wb_dirty_bytes * j.setpoint_bytes
      < 1.0 * (2 * j.setpoint_bytes - j.limit_bytes) * j.wb_setpoint_bytes
  END AS is_innocent,
  j.pool_bytes,
  j.own_bytes,
  j.other_bytes,
  j.too_much,
  j.own_bytes / j.too_much / j.pool_bytes AS own_share_ratio
FROM judged AS j;

-- @view     _pool_held
-- @summary  What other wbs held of the pool that each throttled task waited
--   for, by their last event or sample, if it is not too old. Empty where there
--   is one wb only.
-- @grain    sleep of a throttled task, other wb; order seq, wb_id
-- @needs    wb_throttle_cause, _pool_wb, _pool_other, wb_rule
-- @events   writeback:balance_dirty_pages
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   wb_id INTEGER of _pool_wb
-- @column   held_bytes INTEGER dirty pages and those under writeback
-- @column   basis TEXT events or samples
-- @materialize
CREATE VIEW _pool_held AS
WITH
  -- Each other wb of the pool beside each sleep, with its last sample.
  points AS (
    SELECT c.seq, c.ts, w.wb_id, NULL AS sample_id
    -- Nothing is read where there is one wb only.
    FROM (SELECT k.wb_id FROM _pool_wb AS k WHERE k.wb_id = 2) AS o
    CROSS JOIN wb_throttle_cause AS c
    CROSS JOIN _pool_wb AS w
    WHERE NOT (w.bdi = c.bdi AND w.cgroup_ino = coalesce(c.cgroup_ino, 1))
      AND c.dirty_bytes > 0
      AND c.wb_dirty_bytes IS NOT NULL
      AND (
        c.domain IS NULL
        OR c.domain <> 'memcg'
        OR w.cgroup_ino = coalesce(c.cgroup_ino, 1)
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
  )
SELECT r.seq, r.wb_id, p.wb_dirty_bytes AS held_bytes, p.basis
FROM reached AS r
CROSS JOIN wb_rule AS v
JOIN _pool_other AS p ON p.sample_id = r.sample_id
WHERE r.seq IS NOT NULL
  AND r.ts - p.ts <= v.stale_ns
  AND p.wb_dirty_bytes > 0;

-- @view     _pool_wb
-- @summary  The wbs that hold dirty pages, numbered.
-- @grain    bdi, cgroup; order wb_id
-- @key      wb_id
-- @needs    wb_throttle_told, wb_cgroup, wb_bdi_sample
-- @events   writeback:balance_dirty_pages
-- @column   wb_id INTEGER 1, 2, 3 ...
-- @column   bdi TEXT backing device
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @materialize
CREATE VIEW _pool_wb AS
WITH
  seen AS (
    SELECT t.bdi, coalesce(t.cgroup_ino, g.cgroup_ino, 1) AS cgroup_ino
    FROM (
      SELECT DISTINCT s.bdi, s.cgroup_ino, s.cgroup_path
      FROM wb_throttle_told AS s
      WHERE s.is_step = 1
    ) AS t
    LEFT JOIN wb_cgroup AS g ON g.path = t.cgroup_path
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
-- @needs    wb_throttle_told, wb_cgroup, wb_units, wb_bdi_sample, _pool_wb
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
    SELECT t.ts, t.bdi, coalesce(t.cgroup_ino, g.cgroup_ino, 1) AS cgroup_ino,
      t.wb_dirty * u.page_bytes AS wb_dirty_bytes, 'events' AS basis
    FROM wb_throttle_told AS t
    CROSS JOIN wb_units AS u
    LEFT JOIN wb_cgroup AS g ON g.path = t.cgroup_path
    WHERE t.is_step = 1 AND t.wb_dirty IS NOT NULL
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
-- In this order: a search of samples by the bdi alone would find those of all
-- its cgroups.
CROSS JOIN _pool_wb AS w ON w.bdi = t.bdi AND w.cgroup_ino = t.cgroup_ino;
