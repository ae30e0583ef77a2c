-- SPDX-License-Identifier: Apache-2.0
-- How much each throttled task really dirtied, by the best source there is, and
-- when.

-- @view     wb_task_dirtied
-- @summary  How much each throttled task dirtied of each wb: what its events
--   charge, which is too low, and the best estimate there is. The writers of a
--   wb are compared with one another, so all have the same basis: the best one
--   that tells of each of them.
-- @grain    task under a name, bdi, cgroup; order task_id, bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages
-- @optional writeback:global_dirty_state, wbscope:balance_dirty_pages_entry,
--   writeback:writeback_dirty_folio, syscalls:sys_exit_write
-- @column   task_id INTEGER of wb_task: the task under its name then
-- @column   charged_bytes INTEGER by balance_dirty_pages events; a lower bound
-- @column   first_charged_bytes INTEGER of that, by its first event
-- @column   slept_ns INTEGER sum of its sleeps; NULL = it was never charged or
--   held up
-- @column   estimate_bytes INTEGER what it dirtied, by the basis
-- @column   basis TEXT folio: each folio that the task made dirty; probe: each
--   call of balance_dirty_pages(), exact up to the last call; proc_io: the
--   kernel's account of the thread; fio: of the job; syscalls: write system
--   calls; calibrated: charged, and its share of what the machine dirtied
--   besides; bound: charged
-- @column   coverage_ratio REAL of the machine: bytes charged to all tasks over
--   bytes dirtied; NULL = global_dirty_state does not tell
-- @column   free_calls_count INTEGER calls in free run, of all wbs of the task:
--   global_dirty_state without balance_dirty_pages; NULL = not recorded
-- @column   from_ts INTEGER ns, its first call
-- @column   to_ts INTEGER ns, its last call
-- @column   first_bytes INTEGER what the first call counted: dirtied before it,
--   so before the time that a rate is taken over
-- @column   fio_bytes_per_s REAL speed by fio; NULL = basis is not fio
-- @column   asked_bytes_per_s REAL rate= of its fio job; NULL = none is known
-- @column   fio_clat_max_ns INTEGER longest write of its fio job, as fio saw it
-- @column   is_fio INTEGER 1: its fio job is known
-- @column   is_incidental INTEGER 1: it wrote on the side (wb_rule), and is not
--   compared with others
-- @source   docs/fairness.md; mm/page-writeback.c balance_dirty_pages(),
--   domain_poll_intv()
-- @materialize
CREATE VIEW wb_task_dirtied AS
WITH
  first_charge AS (
    SELECT t.seq, t.accounted_bytes
    FROM wb_throttle_total AS a
    CROSS JOIN wb_throttle AS t ON t.seq = a.first_seq
  ),
  -- Of each wb the best that tells of every writer.
  told AS (
    SELECT w.bdi, w.cgroup_key, s.grade
    FROM _dirtied_writer AS w
    JOIN _dirtied_source AS s
      ON s.task_id = w.task_id
      AND s.bdi = w.bdi
      AND s.cgroup_key = w.cgroup_key
    WHERE w.is_incidental = 0
    GROUP BY w.bdi, w.cgroup_key, s.grade, w.writers_count
    HAVING count(*) = w.writers_count
  ),
  best AS (
    SELECT t.bdi, t.cgroup_key, min(t.grade) AS grade
    FROM told AS t
    GROUP BY t.bdi, t.cgroup_key
  )
SELECT
  s.task_id, s.tid, s.bdi, s.cgroup_ino, s.charged_bytes,
  coalesce(f.accounted_bytes, 0) AS first_charged_bytes,
  s.slept_ns, s.slept_until_ts,
  CAST(coalesce(e.bytes, s.charged_bytes) + 0.5 AS INTEGER) AS estimate_bytes,
  CASE e.grade
    WHEN 0 THEN 'folio'
    WHEN 1 THEN 'probe'
    WHEN 2 THEN 'proc_io'
    WHEN 3 THEN 'fio'
    WHEN 4 THEN 'syscalls'
    WHEN 5 THEN 'calibrated'
    ELSE 'bound'
  END AS basis,
  s.coverage_ratio, s.free_calls_count,
  CASE
    WHEN e.grade IN (0, 1) THEN coalesce(e.first_ts, s.first_ts)
    WHEN e.grade IN (2, 3, 4, 5) THEN s.seen_from_ts
    ELSE s.first_ts
  END AS from_ts,
  CASE
    WHEN e.grade IN (0, 1) THEN coalesce(e.last_ts, s.last_ts)
    WHEN e.grade IN (2, 3, 4, 5) THEN s.seen_to_ts
    ELSE s.last_ts
  END AS to_ts,
  CASE
    WHEN e.grade = 1 THEN coalesce(
      (
        SELECT c.dirtied_bytes
        FROM wb_call AS c
        WHERE c.tid = s.tid AND c.seq = e.first_seq
      ),
      0
    )
    WHEN e.grade IN (0, 2, 3, 4) THEN 0
    -- Two looks before its first event: the first call was in free run.
    WHEN e.grade = 5
      AND EXISTS (
        SELECT 1
        FROM raw_global_dirty_state AS g
        WHERE g.seq > s.look_seq AND g.seq < s.first_seq AND g.tid = s.tid
      )
      THEN CAST(s.wb_ratio * s.free_call_bytes AS INTEGER)
    ELSE coalesce(f.accounted_bytes, 0)
  END AS first_bytes,
  CASE WHEN e.grade = 3 THEN j.bytes_per_s END AS fio_bytes_per_s,
  j.asked_bytes_per_s,
  j.clat_max_ns AS fio_clat_max_ns,
  CASE WHEN j.task_id IS NULL THEN 0 ELSE 1 END AS is_fio,
  s.is_incidental
FROM _dirtied_writer AS s
LEFT JOIN best AS b ON b.bdi = s.bdi AND b.cgroup_key = s.cgroup_key
LEFT JOIN _dirtied_source AS e
  ON e.task_id = s.task_id
  AND e.bdi = s.bdi
  AND e.cgroup_key = s.cgroup_key
  AND e.grade = b.grade
LEFT JOIN first_charge AS f ON f.seq = s.first_seq
-- The task's job, also where it writes to another wb on the side.
LEFT JOIN _dirtied_source AS j ON j.task_id = s.task_id AND j.grade = 3;

-- @view     _dirtied_writer
-- @summary  Each task and wb that balance_dirty_pages events name: what they
--   charge to it, how much of what the machine dirtied that is in all, and what
--   a call in free run stands for.
-- @grain    task under a name, bdi, cgroup; order task_id, bdi, cgroup_ino
-- @column   cgroup_key INTEGER cgroup that owns the wb; 0 = not told
-- @column   charged_bytes INTEGER that its events charge
-- @column   slept_ns INTEGER sum of the sleeps
-- @column   slept_until_ts INTEGER ns, end of the last one
-- @column   is_incidental INTEGER as in wb_task_dirtied
-- @column   wbs_count INTEGER wbs that the task writes to, not by the way
-- @column   task_charged_bytes INTEGER of the task, of all wbs
-- @column   writers_count INTEGER tasks that write to the wb, not by the way
-- @column   place INTEGER 1: the wb that the task writes most to
-- @column   free_calls_count INTEGER as in wb_task_dirtied
-- @column   seen_from_ts INTEGER ns, first look or event
-- @column   seen_to_ts INTEGER ns, last look or event
-- @column   look_seq INTEGER of the first look
-- @column   coverage_ratio REAL as in wb_task_dirtied
-- @column   free_call_bytes REAL what a call in free run stands for
-- @column   wb_ratio REAL share of the wb in what the task dirtied
-- @materialize
-- @cost     170
CREATE VIEW _dirtied_writer AS
WITH
  -- Of the time of interest.
  charge AS (
    SELECT
      t.task_id, t.bdi,
      coalesce(t.cgroup_ino, 0) AS cgroup_key,
      sum(t.accounted_bytes) AS charged_bytes,
      max(t.pause_ns) AS pause_max_ns,
      sum(t.slept_ns) AS slept_ns,
      max(t.sleep_ts + t.slept_ns) AS slept_until_ts
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    WHERE t.is_step = 1 AND in_time!(t.ts, b)
    GROUP BY t.task_id, t.bdi, coalesce(t.cgroup_ino, 0)
  ),
  wrote AS (
    SELECT
      a.task_id, a.tid, a.bdi, a.cgroup_ino,
      coalesce(a.cgroup_ino, 0) AS cgroup_key,
      a.events_count, a.first_seq, a.first_ts, a.last_ts,
      coalesce(c.charged_bytes, 0) AS charged_bytes,
      c.slept_ns, c.slept_until_ts,
      -- A task's count of dirtied pages is of all wbs, so the only call for one
      -- can be charged what was dirtied of another.
      CASE
        WHEN (
            a.events_count = 1
            OR coalesce(c.charged_bytes, 0) <= v.incidental_bytes
          )
          AND (
            coalesce(c.pause_max_ns, 0) <= 0
            OR a.events_count * v.incidental_divisor
              <= sum(a.events_count) OVER (PARTITION BY a.task_id)
          )
          THEN 1
        ELSE 0
      END AS is_incidental
    FROM wb_throttle_total AS a
    CROSS JOIN wb_rule AS v
    LEFT JOIN charge AS c
      ON c.task_id = a.task_id
      AND c.bdi = a.bdi
      AND c.cgroup_key = coalesce(a.cgroup_ino, 0)
  ),
  placed AS (
    SELECT
      w.task_id, w.tid, w.bdi, w.cgroup_ino, w.cgroup_key, w.first_seq,
      w.first_ts, w.last_ts, w.charged_bytes, w.slept_ns, w.slept_until_ts,
      w.is_incidental, k.comm,
      sum(1 - w.is_incidental) OVER of_task AS wbs_count,
      sum(w.events_count) OVER of_task AS all_events_count,
      sum(w.charged_bytes) OVER of_task AS task_charged_bytes,
      sum(1 - w.is_incidental) OVER (PARTITION BY w.bdi, w.cgroup_key)
        AS writers_count,
      row_number() OVER (
        PARTITION BY w.task_id
        ORDER BY
          w.is_incidental,
          w.charged_bytes DESC,
          w.events_count DESC,
          w.bdi, w.cgroup_ino
      ) AS place
    FROM wrote AS w
    JOIN wb_task AS k ON k.task_id = w.task_id
    WINDOW of_task AS (PARTITION BY w.task_id)
  ),
  looked AS (
    SELECT
      w.task_id, w.tid, w.bdi, w.cgroup_ino, w.cgroup_key, w.first_seq,
      w.first_ts, w.last_ts, w.charged_bytes, w.slept_ns, w.slept_until_ts,
      w.is_incidental, w.comm, w.wbs_count, w.task_charged_bytes,
      w.writers_count, w.place,
      -- Each balance_dirty_pages event has a look of its own before it.
      CASE
        WHEN l.looks_count > w.all_events_count
          THEN l.looks_count - w.all_events_count
        WHEN m.total_bytes IS NOT NULL THEN 0
      END AS free_calls_count,
      min(coalesce(l.first_ts, w.first_ts), w.first_ts) AS seen_from_ts,
      max(coalesce(l.last_ts, w.last_ts), w.last_ts) AS seen_to_ts,
      l.first_seq AS look_seq,
      m.total_bytes
    FROM placed AS w
    CROSS JOIN _dirtied_machine AS m
    LEFT JOIN _dirtied_look AS l ON l.task_id = w.task_id
  ),
  machine AS (
    SELECT
      l.total_bytes,
      sum(l.charged_bytes) AS charged_bytes,
      -- A task of several wbs counts once.
      sum(CASE WHEN l.place = 1 THEN l.free_calls_count ELSE 0 END)
        AS free_calls_count,
      -- A memory cgroup's tasks are polled more often (the smaller of two
      -- intervals counts), so their calls stand for fewer pages than others'.
      count(DISTINCT l.cgroup_key) AS cgroups_count
    FROM looked AS l
    GROUP BY l.total_bytes
  )
SELECT
  l.task_id, l.tid, l.bdi, l.cgroup_ino, l.cgroup_key, l.first_seq, l.first_ts,
  l.last_ts, l.charged_bytes, l.slept_ns, l.slept_until_ts, l.is_incidental,
  l.comm, l.wbs_count, l.task_charged_bytes, l.writers_count, l.place,
  l.free_calls_count, l.seen_from_ts, l.seen_to_ts, l.look_seq,
  1.0 * m.charged_bytes / m.total_bytes AS coverage_ratio,
  CASE
    WHEN m.cgroups_count > 1 THEN NULL
    WHEN m.total_bytes <= m.charged_bytes THEN 0.0
    WHEN m.free_calls_count > 0
      THEN 1.0 * (m.total_bytes - m.charged_bytes) / m.free_calls_count
  END AS free_call_bytes,
  CASE
    WHEN l.wbs_count = 1 THEN 1.0 - l.is_incidental
    WHEN l.task_charged_bytes > 0
      THEN 1.0 * l.charged_bytes / l.task_charged_bytes
    ELSE 0.0
  END AS wb_ratio
FROM looked AS l
CROSS JOIN machine AS m;

-- @view     _dirtied_machine
-- @summary  Pages that the machine dirtied in the time of interest.
-- @grain    one row
-- @column   total_bytes INTEGER NULL = not told, or nothing
CREATE VIEW _dirtied_machine AS
WITH
  -- By time: looked up at the ends, as there can be millions.
  ends AS (
    SELECT
      (
        SELECT g.nr_dirtied
        FROM raw_global_dirty_state AS g
        WHERE p.t0_ns IS NULL OR g.ts >= p.t0_ns
        ORDER BY g.seq
        LIMIT 1
      ) AS first_count,
      (
        SELECT g.nr_dirtied
        FROM raw_global_dirty_state AS g
        WHERE p.t1_ns IS NULL OR g.ts < p.t1_ns
        ORDER BY g.seq DESC
        LIMIT 1
      ) AS last_count
    FROM wb_params AS p
  )
SELECT
  CASE WHEN e.last_count > e.first_count
    THEN (e.last_count - e.first_count) * u.page_bytes
  END AS total_bytes
FROM ends AS e
CROSS JOIN wb_units AS u;

-- @view     _dirtied_look
-- @summary  How often each throttled task looked at the machine's dirty pages:
--   each loop of each call of balance_dirty_pages() does, in free run too.
-- @grain    task under a name; order task_id
-- @key      task_id
-- @column   task_id INTEGER of wb_task
-- @column   looks_count INTEGER global_dirty_state events
-- @column   first_ts INTEGER ns, of the first
-- @column   last_ts INTEGER ns, of the last
-- @source   mm/page-writeback.c domain_dirty_limits()
-- @materialize
CREATE VIEW _dirtied_look AS
WITH
  dirtier AS (
    SELECT DISTINCT a.task_id, k.tid, k.from_seq, k.until_seq
    FROM wb_throttle_total AS a
    JOIN wb_task AS k ON k.task_id = a.task_id
  ),
  -- Whether a tid is one task with one name, and all of the trace is asked for.
  plain AS (
    SELECT 1 AS is_plain
    FROM wb_params AS p
    WHERE p.t0_ns IS NULL
      AND p.t1_ns IS NULL
      AND NOT EXISTS (
        SELECT t.tid FROM wb_task AS t GROUP BY t.tid HAVING count(*) > 1
      )
  ),
  simple AS (
    SELECT e.tid, e.loaded_count AS looks_count, e.first_seq, e.last_seq
    FROM raw_event_task AS e
    WHERE substr(e.event, instr(e.event, ':') + 1) = 'global_dirty_state'
      AND EXISTS (SELECT 1 FROM plain)
  ),
  counted AS (
    SELECT d.task_id, d.tid, s.looks_count, s.first_seq, s.last_seq
    FROM dirtier AS d
    JOIN simple AS s ON s.tid = d.tid
    UNION ALL
    SELECT d.task_id, d.tid, count(*), min(g.seq), max(g.seq)
    -- Nothing is read where ingest has counted them.
    FROM (SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM plain)) AS o
    CROSS JOIN raw_global_dirty_state AS g
    CROSS JOIN wb_params AS p
    CROSS JOIN dirtier AS d
      ON task_of!(d, g)
    WHERE in_range!(g.ts, p)
    GROUP BY d.task_id, d.tid
  )
SELECT
  c.task_id, c.looks_count,
  f.ts AS first_ts,
  l.ts AS last_ts,
  c.first_seq
FROM counted AS c
CROSS JOIN raw_global_dirty_state AS f ON f.seq = c.first_seq
CROSS JOIN raw_global_dirty_state AS l ON l.seq = c.last_seq;

-- @view     _dirtied_source
-- @summary  What each writer dirtied, by each source that tells.
-- @grain    task under a name, bdi, cgroup, source; order task_id, bdi,
--   cgroup_key, grade
-- @column   grade INTEGER which source, the best first: 0 folios, 1 probes, 2
--   /proc io, 3 fio, 4 system calls, 5 looks at the dirty state
-- @column   bytes REAL dirtied
-- @column   first_ts INTEGER ns, of folios and probes: of the first
-- @column   first_seq INTEGER of the first call
-- @column   bytes_per_s REAL of fio: over the job's runtime
-- @column   asked_bytes_per_s REAL its rate=, of writes; NULL = none
-- @column   clat_max_ns INTEGER its longest write
-- @materialize
CREATE VIEW _dirtied_source AS
WITH
  probed AS (
    SELECT
      w.task_id, w.bdi, w.cgroup_key,
      1.0 * sum(p.dirtied_bytes) - coalesce(sum(l.bytes), 0) AS bytes,
      min(p.ts) AS first_ts,
      max(p.ts) AS last_ts,
      min(p.seq) AS first_seq
    FROM _dirtied_writer AS w
    CROSS JOIN wb_bounds AS b
    JOIN wb_task AS k ON k.task_id = w.task_id
    JOIN wb_call AS p
      ON task_of!(k, p)
      AND p.call = 'balance_dirty_pages'
      AND (
        (p.device IS NULL AND w.place = 1)
        OR (p.device = w.bdi AND coalesce(p.cgroup_ino, 0) = w.cgroup_key)
      )
    LEFT JOIN _dirtied_leak AS l ON l.seq = p.seq
    WHERE in_time!(p.ts, b)
    GROUP BY w.task_id, w.bdi, w.cgroup_key
  ),
  -- fio does not tell which thread did a job: the largest job is that of the
  -- task with the most bytes, when there are as many of the one as of the
  -- other. Where two are so near that it may be the wrong one, either will do.
  fio_task AS (
    SELECT
      w.task_id, w.bdi, w.cgroup_key,
      row_number() OVER (
        ORDER BY w.charged_bytes
            + coalesce(w.free_calls_count * w.free_call_bytes, 0) DESC,
          w.task_id
      ) AS place,
      count(*) OVER () AS tasks_count
    FROM _dirtied_writer AS w
    WHERE w.comm GLOB 'fio*' AND w.wbs_count = 1 AND w.is_incidental = 0
  ),
  -- The thread's account has no times, so it is of the whole run only.
  accounted AS (
    SELECT
      w.task_id,
      max(CASE WHEN i.sample <> 'start' THEN i.write_bytes END)
        - max(CASE WHEN i.sample = 'start' THEN i.write_bytes ELSE 0 END)
        AS bytes
    FROM _dirtied_writer AS w
    CROSS JOIN wb_params AS p
    JOIN raw_task_io AS i ON i.tid = w.tid
    WHERE p.t0_ns IS NULL
      AND p.t1_ns IS NULL
      AND w.place = 1
      AND w.is_incidental = 0
      AND NOT EXISTS (
        SELECT 1
        FROM _dirtied_writer AS o
        WHERE o.tid = w.tid AND o.task_id <> w.task_id
      )
    GROUP BY w.task_id
    HAVING sum(CASE WHEN i.sample <> 'start' THEN 1 ELSE 0 END) = 1
      AND max(CASE WHEN i.sample <> 'start' THEN i.write_bytes END) > 0
  ),
  written AS MATERIALIZED (SELECT w.* FROM written!(b) AS w),
  -- A thread is charged under one name what it wrote under another, and also
  -- what tasks that exited left on its CPU.
  thread AS (
    SELECT
      t.tid, t.bytes,
      max(sum(w.task_charged_bytes) - t.bytes, 0) AS excess_bytes
    FROM (
      SELECT c.tid, sum(c.bytes) AS bytes FROM written AS c GROUP BY c.tid
    ) AS t
    JOIN _dirtied_writer AS w ON w.tid = t.tid AND w.place = 1
    GROUP BY t.tid, t.bytes
  ),
  -- With more excess, writers dirty pages by other ways, too: mmap, io_uring.
  called AS (
    SELECT o.bdi, o.cgroup_key
    FROM (
      SELECT DISTINCT w.bdi, w.cgroup_key, w.tid
      FROM _dirtied_writer AS w
      WHERE w.is_incidental = 0
    ) AS o
    JOIN thread AS t ON t.tid = o.tid
    CROSS JOIN wb_rule AS v
    GROUP BY o.bdi, o.cgroup_key, v.incidental_bytes, v.leaked_bytes,
      v.leaked_ratio
    HAVING max(t.excess_bytes) <= v.incidental_bytes
      OR (
        max(t.excess_bytes) <= v.leaked_bytes
        AND sum(t.excess_bytes) <= v.leaked_ratio * sum(t.bytes)
      )
  )
SELECT
  w.task_id, w.bdi, w.cgroup_key,
  0 AS grade,
  -- Of several cgroups each has the share that it was charged.
  coalesce(
    f.bytes * (w.charged_bytes + 1.0) / sum(w.charged_bytes + 1) OVER (
      PARTITION BY w.task_id, w.bdi
    ), 0.0
  ) AS bytes,
  f.first_ts, f.last_ts,
  NULL AS first_seq,
  NULL AS bytes_per_s,
  NULL AS asked_bytes_per_s,
  NULL AS clat_max_ns
FROM _dirtied_writer AS w
LEFT JOIN _dirtied_folio AS f ON f.task_id = w.task_id AND f.bdi = w.bdi
WHERE EXISTS (SELECT 1 FROM _dirtied_folio)
UNION ALL
SELECT p.task_id, p.bdi, p.cgroup_key, 1, p.bytes, p.first_ts, p.last_ts,
  p.first_seq, NULL, NULL, NULL
FROM probed AS p
UNION ALL
-- It is of all wbs, too: each has the share that it was charged.
SELECT w.task_id, w.bdi, w.cgroup_key, 2, w.wb_ratio * a.bytes, NULL, NULL,
  NULL, NULL, NULL, NULL
FROM _dirtied_writer AS w
JOIN accounted AS a ON a.task_id = w.task_id
WHERE w.is_incidental = 0
UNION ALL
SELECT t.task_id, t.bdi, t.cgroup_key, 3, f.bytes, NULL, NULL, NULL,
  f.bytes_per_s, f.asked_bytes_per_s, f.clat_max_ns
FROM fio_task AS t
CROSS JOIN wb_params AS p
JOIN _dirtied_fio AS f ON f.place = t.place AND f.jobs_count = t.tasks_count
WHERE p.t0_ns IS NULL AND p.t1_ns IS NULL
UNION ALL
SELECT w.task_id, w.bdi, w.cgroup_key, 4, w.wb_ratio * coalesce(c.bytes, 0),
  NULL, NULL, NULL, NULL, NULL, NULL
FROM _dirtied_writer AS w
JOIN thread AS t ON t.tid = w.tid AND t.bytes > 0
JOIN called AS k ON k.bdi = w.bdi AND k.cgroup_key = w.cgroup_key
LEFT JOIN written AS c ON c.task_id = w.task_id
WHERE w.is_incidental = 0
UNION ALL
SELECT w.task_id, w.bdi, w.cgroup_key, 5,
  w.charged_bytes + w.wb_ratio * w.free_calls_count * w.free_call_bytes, NULL,
  NULL, NULL, NULL, NULL, NULL
FROM _dirtied_writer AS w
CROSS JOIN wb_rule AS v
WHERE w.free_calls_count * w.free_call_bytes IS NOT NULL
  AND w.coverage_ratio >= v.calibrated_least_ratio;

-- @view     _dirtied_folio
-- @summary  What tasks dirtied, by the folios that they made dirty. Empty
--   unless these are as many as the pages that the machine counted in the same
--   time, and that is enough to tell: a large folio is one event, and events
--   can be lost.
-- @grain    task under a name, bdi; order task_id, bdi
-- @column   task_id INTEGER of wb_task
-- @column   bdi TEXT where they belong
-- @column   bytes INTEGER of its folios
-- @column   first_ts INTEGER ns, of the first
-- @column   last_ts INTEGER ns, of the last
-- @source   mm/page-writeback.c folio_account_dirtied()
-- @materialize
CREATE VIEW _dirtied_folio AS
WITH
  looked AS (
    SELECT
      min(g.seq) AS first_seq,
      max(g.seq) AS last_seq,
      max(g.nr_dirtied) - min(g.nr_dirtied) AS pages
    -- Nothing is read where no folio is told.
    FROM (SELECT 1 FROM raw_writeback_dirty_folio LIMIT 1) AS o
    CROSS JOIN raw_global_dirty_state AS g
  )
SELECT
  k.task_id,
  f.name AS bdi,
  count(*) * u.page_bytes AS bytes,
  min(f.ts) AS first_ts,
  max(f.ts) AS last_ts
FROM looked AS l
CROSS JOIN wb_units AS u
CROSS JOIN wb_rule AS v
CROSS JOIN wb_bounds AS b
CROSS JOIN raw_writeback_dirty_folio AS f
CROSS JOIN wb_task AS k
  ON task_of!(k, f)
WHERE in_time!(f.ts, b)
  AND (
    SELECT count(*)
    FROM raw_writeback_dirty_folio AS a
    WHERE a.seq > l.first_seq AND a.seq < l.last_seq
  ) >= v.folios_least_ratio * l.pages - u.lag_bytes / u.page_bytes
  -- Of less than that the lag would hide any size.
  AND l.pages * u.page_bytes >= v.lag_most_times * u.lag_bytes
GROUP BY k.task_id, f.name, u.page_bytes;

-- @view     _dirtied_leak
-- @summary  A call of balance_dirty_pages() also counts what a task that exited
--   left on the CPU. Since an earlier call a task cannot have dirtied more than
--   the whole machine did, so what is more than that is not its own. Of tasks
--   that dirtied so little that it matters.
-- @grain    call; order tid, seq
-- @key      seq
-- @column   seq INTEGER of wb_call
-- @column   bytes INTEGER of what it counts, not the task's own
-- @source   mm/page-writeback.c dirty_throttle_leaks
-- @materialize
CREATE VIEW _dirtied_leak AS
WITH
  light AS (
    SELECT c.tid
    FROM wb_call AS c
    CROSS JOIN wb_rule AS v
    WHERE c.call = 'balance_dirty_pages'
    GROUP BY c.tid, v.leak_felt_bytes
    HAVING sum(c.dirtied_bytes) <= v.leak_felt_bytes
  ),
  -- How much more it counts up to each call than the machine has dirtied.
  counted AS (
    SELECT
      c.tid, c.seq, u.lag_bytes,
      sum(c.dirtied_bytes) OVER (PARTITION BY c.tid ORDER BY c.seq)
        - u.page_bytes
        * (
          SELECT g.nr_dirtied
          FROM raw_global_dirty_state AS g
          WHERE g.seq > c.seq
          ORDER BY g.seq
          LIMIT 1
        ) AS bytes
    FROM light AS l
    CROSS JOIN wb_call AS c
      ON c.tid = l.tid AND c.call = 'balance_dirty_pages'
    CROSS JOIN wb_units AS u
  ),
  grown AS (
    SELECT
      o.tid, o.seq, o.lag_bytes,
      o.bytes - min(o.bytes) OVER (PARTITION BY o.tid ORDER BY o.seq) AS bytes
    FROM counted AS o
    WHERE o.bytes IS NOT NULL
  ),
  leaked AS (
    SELECT
      g.tid, g.seq,
      max(
        max(g.bytes) OVER (PARTITION BY g.tid ORDER BY g.seq) - g.lag_bytes, 0
      ) AS bytes
    FROM grown AS g
  )
SELECT
  k.seq,
  k.bytes - lag(k.bytes, 1, 0) OVER (PARTITION BY k.tid ORDER BY k.seq)
    AS bytes
FROM leaked AS k;

-- @view     _dirtied_fio
-- @summary  Jobs of fio that wrote, from fio.json, by the bytes they wrote.
-- @grain    job; order place
-- @column   place INTEGER 1 = wrote most
-- @column   jobs_count INTEGER how many jobs there are
-- @column   bytes REAL written
-- @column   bytes_per_s REAL over its runtime
-- @column   asked_bytes_per_s REAL its rate=, of writes; NULL = none
-- @column   clat_max_ns INTEGER longest write
-- @source   fio's HOWTO: rate, and numbers with k, m, g, t
CREATE VIEW _dirtied_fio AS
WITH
  fact AS (
    SELECT
      CAST(substr(f.path, 8) AS INTEGER) AS job,
      replace(substr(f.path, instr(f.path, ']') + 1), '"', '') AS name,
      f.value
    FROM raw_fio AS f
    WHERE substr(f.path, 1, 7) = '$.jobs['
  ),
  named AS (
    SELECT
      f.job,
      max(CASE WHEN f.name = '.write.io_bytes' THEN f.value END) AS bytes,
      max(CASE WHEN f.name = '.write.runtime' THEN f.value END) AS runtime_ms,
      max(CASE WHEN f.name = '.job options.rate' THEN f.value END) AS rate,
      max(CASE WHEN f.name = '.write.clat_ns.max' THEN f.value END)
        AS clat_max_ns
    FROM fact AS f
    GROUP BY f.job
  ),
  -- One for all, or read,write,trim; a global one holds for jobs without.
  asked AS (
    SELECT
      n.*,
      lower(
        coalesce(
          n.rate,
          (
            SELECT f.value
            FROM raw_fio AS f
            WHERE f.path = '$."global options".rate'
          )
        )
      ) AS all_rates
    FROM named AS n
    WHERE n.bytes > 0
  ),
  of_writes AS (
    SELECT
      a.*,
      substr(a.all_rates, instr(a.all_rates, ',') + 1) AS write_rate
    FROM asked AS a
  )
SELECT
  row_number() OVER (ORDER BY o.bytes DESC, o.job) AS place,
  count(*) OVER () AS jobs_count,
  1.0 * o.bytes AS bytes,
  1.0 * o.bytes * u.second_ns / u.ms_ns / nullif(o.runtime_ms, 0)
    AS bytes_per_s,
  nullif(
    CAST(o.write_rate AS REAL)
    * CASE substr(
        ltrim(
          CASE WHEN instr(o.write_rate, ',') > 0
            THEN substr(o.write_rate, 1, instr(o.write_rate, ',') - 1)
            ELSE o.write_rate
          END,
          '0123456789. '
        ),
        1, 1
      )
      WHEN 'k' THEN u.kib_bytes
      WHEN 'm' THEN u.kib_bytes * u.kib_bytes
      WHEN 'g' THEN u.kib_bytes * u.kib_bytes * u.kib_bytes
      WHEN 't' THEN u.kib_bytes * u.kib_bytes * u.kib_bytes * u.kib_bytes
      ELSE 1
    END,
    0
  ) AS asked_bytes_per_s,
  o.clat_max_ns
FROM of_writes AS o
CROSS JOIN wb_units AS u;
