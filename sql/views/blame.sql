-- SPDX-License-Identifier: Apache-2.0
-- Whose pages filled the pool that a throttled task waited for.

-- @view     wb_pool
-- @summary  The pool of dirty pages that each throttled task waited for: the
--   machine's, or its memory cgroup's; and who filled it. The event tells the
--   pool and what the task's own wb holds of it; what others hold is their last
--   event or sample, if it is not too old (wb_rule.stale_ns), and the rest is
--   unknown.
-- @grain    sleep of a throttled task; order seq
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done,
--   writeback:writeback_start, writeback:writeback_written,
--   block:block_rq_complete
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   ts INTEGER ns, trace clock, of the event
-- @column   slept_ns INTEGER how long the task slept after it
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT that the task writes to
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @column   is_innocent INTEGER 1: the task's own wb held less than its share
--   of free run, so that it would not have been throttled alone; NULL = the
--   events do not tell
-- @column   pool_bytes INTEGER dirty pages of the domain; NULL = the event does
--   not tell what its wb holds of them
-- @column   own_bytes INTEGER of its own wb
-- @column   other_bytes INTEGER of the other wbs that are known
-- @column   too_much REAL by how much the parts are more than the whole, as the
--   counters are read one after the other; 1 = they are not
-- @column   own_share_ratio REAL of the pool, held by its own wb
-- @column   holder_bdi TEXT of the wb, other than the task's own, that held
--   most of the pool; NULL = none is known
-- @column   holder_cgroup_ino INTEGER of that wb
-- @column   holder_bytes INTEGER what it held, by its last event or sample
-- @column   holder_share_ratio REAL of the pool, held by it; 0 = none is known
-- @column   has_rival INTEGER 1: pages of others can only be those of another
--   cgroup on the same device
-- @column   rival_cgroup_ino INTEGER that cgroup; NULL = there are several, or
--   none
-- @column   is_written INTEGER 0: nothing shows that anything was written for
--   the bdi
-- @column   still_ns INTEGER then: how long the machine's nr_written stood
--   still; NULL = it did not, or was not recorded
-- @column   runs_count INTEGER then: times that its flushers began and ended;
--   NULL = that was not recorded
-- @source   mm/page-writeback.c balance_dirty_pages(): freerun and the wb's
--   share of it; include/trace/events/writeback.h
CREATE VIEW wb_pool AS
WITH
  pool AS (
    SELECT
      c.*,
      coalesce(k.held_bytes, 0) AS other_bytes,
      CASE WHEN c.dirty_bytes > 0 AND c.wb_dirty_bytes IS NOT NULL
        THEN c.dirty_bytes
      END AS pool_bytes,
      min(c.wb_dirty_bytes, c.dirty_bytes) AS own_bytes
    FROM wb_throttle_cause AS c
    LEFT JOIN _pool_beside AS k ON k.seq = c.seq
  ),
  judged AS (
    SELECT
      p.*,
      max(1.0, 1.0 * (p.own_bytes + p.other_bytes) / p.pool_bytes) AS too_much
    FROM pool AS p
  )
SELECT
  j.seq, j.ts, j.slept_ns, j.task_id, j.bdi,
  coalesce(j.cgroup_ino, 1) AS cgroup_ino,
  CASE WHEN j.pool_bytes IS NOT NULL
    THEN j.wb_dirty_bytes * j.setpoint_bytes
      < 1.0 * (2 * j.setpoint_bytes - j.limit_bytes) * j.wb_setpoint_bytes
  END AS is_innocent,
  j.pool_bytes, j.own_bytes, j.other_bytes, j.too_much,
  j.own_bytes / j.too_much / j.pool_bytes AS own_share_ratio,
  h.bdi AS holder_bdi,
  h.cgroup_ino AS holder_cgroup_ino,
  h.held_bytes AS holder_bytes,
  CASE WHEN j.pool_bytes IS NOT NULL
    THEN coalesce(h.held_bytes / j.too_much / j.pool_bytes, 0.0)
  END AS holder_share_ratio,
  r.bdi IS NOT NULL AS has_rival,
  r.rival_cgroup_ino,
  w.bdi IS NULL AS is_written,
  w.still_ns, w.runs_count
FROM judged AS j
LEFT JOIN _pool_holder AS h ON h.seq = j.seq
LEFT JOIN _pool_rival AS r
  ON r.bdi = j.bdi AND r.cgroup_ino = coalesce(j.cgroup_ino, 1)
LEFT JOIN _unwritten AS w ON w.bdi = j.bdi;

-- @view     wb_pool_blame
-- @shared
-- @summary  How long each throttled task waited for which holder's pages: its
--   sleeps in the range, each times the holder's share of the pool then.
-- @grain    task under a name, bdi, cgroup, holder; order task_id, bdi,
--   cgroup_ino
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages_done
-- @column   holder_bdi TEXT whose pages; NULL = unknown
-- @column   holder_cgroup_ino INTEGER of that wb; NULL = unknown
-- @column   held_ns REAL how long
-- @column   basis TEXT own, events, samples or unknown: who told what the
--   holder held
CREATE VIEW wb_pool_blame AS
WITH
  chosen AS MATERIALIZED (
    SELECT
      p.seq, p.task_id, p.bdi, p.cgroup_ino,
      1.0 * p.slept_ns / p.too_much / p.pool_bytes AS ns_per_byte,
      p.slept_ns * p.own_share_ratio AS own_ns,
      p.slept_ns
        * (1.0 * (p.pool_bytes - p.own_bytes - p.other_bytes) / p.pool_bytes)
        AS unknown_ns
    FROM wb_pool AS p
    CROSS JOIN wb_bounds AS b
    WHERE p.pool_bytes IS NOT NULL
      AND in_time!(p.ts, b)
  ),
  victim AS MATERIALIZED (
    SELECT
      row_number() OVER (ORDER BY c.task_id, c.bdi, c.cgroup_ino) AS victim_id,
      c.task_id, c.bdi, c.cgroup_ino,
      sum(c.own_ns) AS own_ns,
      sum(CASE WHEN c.unknown_ns > 0 THEN c.unknown_ns END) AS unknown_ns
    FROM chosen AS c
    GROUP BY c.task_id, c.bdi, c.cgroup_ino
  ),
  weight AS MATERIALIZED (
    SELECT c.seq, v.victim_id, c.ns_per_byte
    FROM chosen AS c
    JOIN victim AS v
      ON v.task_id = c.task_id
      AND v.bdi = c.bdi
      AND v.cgroup_ino = c.cgroup_ino
  ),
  -- Numbers only, which are sorted fastest: there may be millions.
  held AS (
    SELECT
      w.victim_id, h.wb_id,
      sum(w.ns_per_byte * h.held_bytes) AS held_ns,
      min(h.basis) AS basis
    FROM _pool_held AS h
    CROSS JOIN weight AS w ON w.seq = h.seq
    GROUP BY w.victim_id, h.wb_id
  )
SELECT
  v.task_id, v.bdi, v.cgroup_ino,
  v.bdi AS holder_bdi,
  v.cgroup_ino AS holder_cgroup_ino,
  v.own_ns AS held_ns,
  'own' AS basis
FROM victim AS v
UNION ALL
SELECT v.task_id, v.bdi, v.cgroup_ino, k.bdi, k.cgroup_ino, h.held_ns, h.basis
FROM held AS h
JOIN victim AS v ON v.victim_id = h.victim_id
JOIN _pool_wb AS k ON k.wb_id = h.wb_id
UNION ALL
SELECT
  v.task_id, v.bdi, v.cgroup_ino, NULL, NULL, v.unknown_ns, 'unknown'
FROM victim AS v
WHERE v.unknown_ns IS NOT NULL;

-- @view     _pool_holder
-- @summary  Which wb, other than the task's own, held most of the pool that
--   each throttled task waited for.
-- @grain    sleep of a throttled task with another wb that is known; order seq
-- @key      seq
-- @column   bdi TEXT whose pages
-- @column   held_bytes INTEGER by its last event or sample
-- @materialize
CREATE VIEW _pool_holder AS
WITH
  -- Those that told something lately, the largest first: few are looked at
  -- before one that holds, however many wbs there are.
  largest AS (
    SELECT
      s.seq,
      (
        SELECT p.sample_id
        FROM _pool_other AS p
        WHERE p.span_index = s.span_index
          AND p.ts <= s.ts
          AND p.until_ts > s.ts
          AND p.wb_id <> s.wb_id
        ORDER BY p.bytes_down, p.wb_id
        LIMIT 1
      ) AS sample_id
    FROM _pool_sleep AS s
    WHERE s.is_memcg = 0
    UNION ALL
    SELECT
      s.seq,
      (
        SELECT p.sample_id
        FROM _pool_other AS p
        WHERE p.next_index = s.span_index
          AND p.until_ts > s.ts
          AND p.wb_id <> s.wb_id
        ORDER BY p.bytes_down, p.wb_id
        LIMIT 1
      )
    FROM _pool_sleep AS s
    WHERE s.is_memcg = 0
    UNION ALL
    -- A memory cgroup writes to few devices.
    SELECT
      s.seq,
      (
        SELECT p.sample_id
        FROM _pool_other AS p
        WHERE p.wb_id = w.wb_id AND p.ts <= s.ts
        ORDER BY p.ts DESC, p.sample_id DESC
        LIMIT 1
      )
    FROM _pool_sleep AS s
    JOIN _pool_wb AS w
      ON w.cgroup_ino = s.cgroup_ino AND w.wb_id <> s.wb_id
    WHERE s.is_memcg = 1
  ),
  ranked AS (
    SELECT
      l.seq, p.wb_id,
      p.wb_dirty_bytes AS held_bytes,
      row_number() OVER (
        PARTITION BY l.seq ORDER BY p.bytes_down, p.wb_id
      ) AS place
    FROM largest AS l
    CROSS JOIN _pool_other AS p ON p.sample_id = l.sample_id
    CROSS JOIN _pool_sleep AS c ON c.seq = l.seq
    WHERE p.until_ts > c.ts AND p.wb_dirty_bytes > 0
  )
SELECT r.seq, w.bdi, w.cgroup_ino, r.held_bytes
FROM ranked AS r
JOIN _pool_wb AS w ON w.wb_id = r.wb_id
WHERE r.place = 1;

-- @view     _pool_rival
-- @summary  Where pages of others can only be those of another cgroup on the
--   same device, as no other device was written to: a task that ended, or that
--   waits for nothing, tells no more of what its wb holds.
-- @grain    wb whose tasks were throttled, or which was sampled; order bdi,
--   cgroup_ino
-- @column   rival_cgroup_ino INTEGER the other cgroup; NULL = there are several
-- @materialize
-- @cost     24
CREATE VIEW _pool_rival AS
WITH
  wrote AS (
    SELECT w.bdi, w.cgroup_ino FROM _pool_wb AS w
    UNION
    SELECT f.bdi, coalesce(f.cgroup_ino, 1)
    FROM wb_work AS f
    CROSS JOIN wb_rule AS v
    GROUP BY f.bdi, coalesce(f.cgroup_ino, 1), v.few_pages_count
    HAVING sum(f.pages_count) >= v.few_pages_count
    UNION
    -- Who calls fsync writes without a flusher.
    SELECT device!(c), NULL
    FROM raw_block_rq_complete AS c
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    WHERE c.op = 'write'
    GROUP BY c.dev_major, c.dev_minor
    HAVING sum(c.nr_sector) * u.sector_bytes
      >= v.few_pages_count * u.page_bytes
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
  w.bdi, w.cgroup_ino,
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

-- @view     _pool_beside
-- @summary  The sum of _pool_held for each sleep, without a row for each wb: a
--   running sum of what the samples of all wbs say while they hold.
-- @grain    sleep of a throttled task; order seq
-- @key      seq
-- @column   seq INTEGER of the balance_dirty_pages event
-- @column   held_bytes INTEGER dirty pages and those under writeback
-- @materialize
CREATE VIEW _pool_beside AS
WITH
  -- Begin and end of each sample, by the pool that it counts for: the
  -- machine's, or that of a memory cgroup whose limits held tasks up.
  moved AS (
    SELECT p.ts, p.wb_id, p.cgroup_ino, p.wb_dirty_bytes AS bytes
    FROM _pool_other AS p
    UNION ALL
    SELECT p.until_ts, p.wb_id, p.cgroup_ino, -p.wb_dirty_bytes
    FROM _pool_other AS p
  ),
  step AS (
    SELECT NULL AS pool_id, m.wb_id, m.ts, m.bytes, NULL AS seq
    FROM moved AS m
    UNION ALL
    SELECT m.cgroup_ino, m.wb_id, m.ts, m.bytes, NULL
    FROM moved AS m
    WHERE m.cgroup_ino IN (
      SELECT s.cgroup_ino FROM _pool_sleep AS s WHERE s.is_memcg = 1
    )
    UNION ALL
    SELECT
      CASE s.is_memcg WHEN 1 THEN s.cgroup_ino END,
      s.wb_id, s.ts, 0, s.seq
    FROM _pool_sleep AS s
  ),
  summed AS (
    SELECT
      t.seq,
      sum(t.bytes) OVER (
        PARTITION BY t.pool_id ORDER BY t.ts, t.seq IS NOT NULL
        ROWS UNBOUNDED PRECEDING
      ) - sum(t.bytes) OVER (
        PARTITION BY t.pool_id, t.wb_id ORDER BY t.ts, t.seq IS NOT NULL
        ROWS UNBOUNDED PRECEDING
      ) AS held_bytes
    FROM step AS t
  )
SELECT s.seq, s.held_bytes
FROM summed AS s
WHERE s.seq IS NOT NULL AND s.held_bytes > 0;

-- @view     _pool_held
-- @summary  What other wbs held of the pool that each throttled task waited
--   for, by their last event or sample, if it is not too old. Empty where there
--   is one wb only. Sleeps times wbs: for who asks for the holders themselves.
-- @grain    sleep of a throttled task, other wb; order seq, wb_id
-- @column   held_bytes INTEGER dirty pages and those under writeback
CREATE VIEW _pool_held AS
SELECT s.seq, p.wb_id, p.wb_dirty_bytes AS held_bytes, p.basis
FROM _pool_other AS p
CROSS JOIN _pool_sleep AS s ON s.ts >= p.ts AND s.ts < p.until_ts
WHERE p.wb_dirty_bytes > 0
  AND p.wb_id <> s.wb_id
  AND (s.is_memcg = 0 OR p.cgroup_ino = s.cgroup_ino);

-- @view     _pool_sleep
-- @summary  The sleeps whose events tell what their wb holds of the pool. Empty
--   where there is one wb only.
-- @grain    sleep of a throttled task; order seq
-- @key      seq
-- @column   is_memcg INTEGER 1: the limits of that cgroup held the task up
-- @column   span_index INTEGER as in _pool_other
-- @index    ts wb_id cgroup_ino is_memcg seq
-- @materialize
CREATE VIEW _pool_sleep AS
SELECT
  c.seq, c.ts, w.wb_id, w.cgroup_ino,
  coalesce(c.domain = 'memcg', 0) AS is_memcg,
  c.ts / v.stale_ns AS span_index
FROM (SELECT k.wb_id FROM _pool_wb AS k WHERE k.wb_id = 2) AS o
CROSS JOIN wb_throttle_cause AS c
CROSS JOIN _pool_wb AS w
  ON w.bdi = c.bdi AND w.cgroup_ino = coalesce(c.cgroup_ino, 1)
CROSS JOIN wb_rule AS v
WHERE c.dirty_bytes > 0 AND c.wb_dirty_bytes IS NOT NULL;

-- @view     _pool_wb
-- @summary  The wbs that hold dirty pages, numbered.
-- @grain    bdi, cgroup; order wb_id
-- @key      wb_id
-- @column   wb_id INTEGER of _pool_wb; 1, 2, 3 ...
-- @column   cgroup_ino INTEGER cgroup that owns the wb; 1 = root
-- @materialize
-- @cost     26
CREATE VIEW _pool_wb AS
WITH
  seen AS (
    SELECT t.bdi, coalesce(t.cgroup_ino, g.cgroup_ino, 1) AS cgroup_ino
    FROM (
      SELECT DISTINCT s.bdi, s.cgroup_ino, s.cgroup_path
      FROM raw_balance_dirty_pages AS s
      WHERE is_step!(s)
    ) AS t
    LEFT JOIN wb_cgroup AS g ON g.path = t.cgroup_path
    UNION
    SELECT s.device, coalesce(s.cgroup_ino, 1)
    FROM wb_usage AS s
    WHERE s.source = 'bdi' AND s.dirty_bytes + s.writeback_bytes > 0
  )
SELECT
  row_number() OVER (ORDER BY s.bdi, s.cgroup_ino) AS wb_id,
  s.bdi, s.cgroup_ino
FROM seen AS s;

-- @view     _pool_other
-- @summary  _pool_told, numbered, where there is more than one wb; empty else,
--   as no wb has another beside it.
-- @grain    sample; order sample_id
-- @key      sample_id
-- @column   sample_id INTEGER grows with the time within a wb
-- @column   wb_id INTEGER of _pool_wb
-- @column   cgroup_ino INTEGER cgroup that owns it; 1 = root
-- @column   ts INTEGER ns, trace clock
-- @column   until_ts INTEGER when it holds no longer: there is a newer one, or
--   it is too old
-- @column   wb_dirty_bytes INTEGER dirty pages and those under writeback
-- @column   bytes_down INTEGER below 0: less for more of them
-- @column   span_index INTEGER of ts, in times after which a sample is too old
-- @column   next_index INTEGER the one after that, if it holds in that, too
-- @column   basis TEXT events or samples
-- @index    span_index bytes_down wb_id ts until_ts
-- @index    next_index bytes_down wb_id until_ts
-- @index    wb_id ts
-- @materialize
CREATE VIEW _pool_other AS
WITH
  numbered AS (
    SELECT
      row_number() OVER samples AS sample_id,
      t.wb_id, k.cgroup_ino, t.ts, t.wb_dirty_bytes, t.basis,
      CASE WHEN lead(t.wb_id) OVER samples = t.wb_id
        THEN lead(t.ts) OVER samples
      END AS next_ts
    FROM _pool_wb AS w
    CROSS JOIN _pool_told AS t
    CROSS JOIN _pool_wb AS k ON k.wb_id = t.wb_id
    WHERE w.wb_id = 2
    WINDOW samples AS (ORDER BY t.wb_id, t.ts, t.basis DESC)
  ),
  held AS (
    SELECT
      n.*,
      v.stale_ns,
      CASE WHEN n.next_ts - n.ts <= v.stale_ns THEN n.next_ts
        ELSE n.ts + v.stale_ns + 1
      END AS until_ts,
      n.ts / v.stale_ns AS span_index
    FROM numbered AS n
    CROSS JOIN wb_rule AS v
  )
SELECT
  h.sample_id, h.wb_id, h.cgroup_ino, h.ts, h.until_ts, h.wb_dirty_bytes,
  -h.wb_dirty_bytes AS bytes_down,
  h.span_index,
  CASE WHEN h.until_ts > (h.span_index + 1) * h.stale_ns
    THEN h.span_index + 1
  END AS next_index,
  h.basis
FROM held AS h;

-- @view     _pool_told
-- @summary  What each wb held, by the events of its own tasks while they are
--   throttled, and by the samples of debugfs.
-- @grain    sample; order wb_id, ts
-- @column   wb_dirty_bytes INTEGER dirty pages and those under writeback
-- @column   basis TEXT events or samples
CREATE VIEW _pool_told AS
WITH
  -- From 6.10 on a bdi's own row is the sum of those of its cgroups.
  split AS (
    SELECT DISTINCT s.device AS bdi
    FROM wb_usage AS s
    WHERE s.source = 'bdi' AND s.cgroup_ino IS NOT NULL
  ),
  told AS (
    SELECT t.ts, t.bdi, coalesce(t.cgroup_ino, g.cgroup_ino, 1) AS cgroup_ino,
      t.wb_dirty * u.page_bytes AS wb_dirty_bytes, 'events' AS basis
    FROM raw_balance_dirty_pages AS t
    CROSS JOIN wb_units AS u
    LEFT JOIN wb_cgroup AS g ON g.path = t.cgroup_path
    WHERE is_step!(t) AND t.wb_dirty IS NOT NULL
    UNION ALL
    SELECT s.ts, s.device, coalesce(s.cgroup_ino, 1),
      s.dirty_bytes + s.writeback_bytes, 'samples'
    FROM wb_usage AS s
    WHERE s.source = 'bdi'
      AND s.dirty_bytes + s.writeback_bytes IS NOT NULL
      AND (
        s.cgroup_ino IS NOT NULL
        OR s.device NOT IN (SELECT p.bdi FROM split AS p)
      )
  )
SELECT w.wb_id, t.ts, t.wb_dirty_bytes, t.basis
FROM told AS t
-- In this order: a search of samples by the bdi alone would find those of all
-- its cgroups.
CROSS JOIN _pool_wb AS w ON w.bdi = t.bdi AND w.cgroup_ino = t.cgroup_ino;

-- @view     _unwritten
-- @summary  Bdis with throttled tasks for which nothing was written: the
--   machine's nr_written stood still for a second or more, or their flushers
--   began and ended three times or more without a page.
-- @grain    bdi; order bdi
-- @key      bdi
-- @column   bdi TEXT backing device
-- @column   runs_count INTEGER times that its flushers began and ended; NULL =
--   that was not recorded
-- @column   still_ns INTEGER how long it stood still; NULL = it did not, or was
--   not recorded
-- @source   include/trace/events/writeback.h global_dirty_state: nr_written
-- @materialize
-- @cost     43
CREATE VIEW _unwritten AS
WITH
  first AS (
    SELECT g.ts, g.nr_written FROM raw_global_dirty_state AS g
    ORDER BY g.seq LIMIT 1
  ),
  last AS (
    SELECT g.ts, g.nr_written FROM raw_global_dirty_state AS g
    ORDER BY g.seq DESC LIMIT 1
  ),
  machine AS (
    SELECT
      l.ts - f.ts AS dur,
      CASE WHEN l.ts - f.ts >= u.second_ns
        THEN l.nr_written = f.nr_written
      END AS is_still
    FROM wb_units AS u
    LEFT JOIN first AS f ON 1 = 1
    LEFT JOIN last AS l ON 1 = 1
  ),
  flushed AS (
    SELECT
      w.bdi,
      sum(w.pages_count) AS pages_count,
      nullif(sum(w.ended_count), 0) AS runs_count
    FROM wb_work AS w
    GROUP BY w.bdi
  )
SELECT
  t.bdi, f.runs_count,
  CASE m.is_still WHEN 1 THEN m.dur END AS still_ns
FROM machine AS m
-- All events are looked at only where that may be so.
CROSS JOIN (
  SELECT DISTINCT r.bdi
  FROM raw_balance_dirty_pages AS r
  WHERE (SELECT coalesce(o.is_still, 1) FROM machine AS o) = 1
) AS t
LEFT JOIN flushed AS f ON f.bdi = t.bdi
WHERE coalesce(m.is_still, f.pages_count = 0 AND f.runs_count >= 3) = 1;
