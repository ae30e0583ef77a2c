-- SPDX-License-Identifier: Apache-2.0
-- What is wrong, in words, and what must be known before a number is believed:
-- the place of findings and warnings among the views.

-- @view     wb_finding
-- @summary  The findings of the run in words. The runner replaces this view by
--   the rows that sql/findings makes; the text below is the default.
-- @grain    finding; order place
-- @column   place INTEGER 1 = to be told first
-- @column   id TEXT rule, a file of sql/findings
-- @column   title TEXT in a few words
-- @column   severity TEXT severe, warning, note or ok
-- @column   confidence TEXT measured, inferred or cannot tell
-- @column   cost_task_ns INTEGER time that all tasks together lost to it
-- @column   text TEXT what is wrong, with the numbers
-- @column   evidence TEXT commands that show the numbers
-- @column   advice TEXT what to change; NULL = nothing
-- @column   first_ts INTEGER ns, trace clock; NULL = not about a part of time
-- @column   last_ts INTEGER ns, trace clock; NULL likewise
CREATE VIEW wb_finding AS
SELECT
  NULL AS place,
  NULL AS id,
  NULL AS title,
  NULL AS severity,
  NULL AS confidence,
  NULL AS cost_task_ns,
  NULL AS text,
  NULL AS evidence,
  NULL AS advice,
  NULL AS first_ts,
  NULL AS last_ts
FROM (SELECT 0 AS is_told) AS t
WHERE t.is_told = 1;

-- @view     wb_warning
-- @summary  What the reader of an answer must know: the rows of a query's name,
--   and those of '*' with every answer.
-- @grain    warning; order scope, slug
-- @column   scope TEXT name of a query, or *
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_warning AS
-- The files of sql/warnings add their rows.
SELECT '' AS scope, '' AS slug, '' AS message
WHERE 0;

-- @view     wb_loss_total
-- @summary  What each finding cost, and whom, in the time of interest. Findings
--   about a device are apart by device, those about a cgroup by cgroup.
-- @grain    finding, bdi, cgroup; order finding, bdi, cgroup_ino
-- @column   finding TEXT rule of sql/findings
-- @column   bdi TEXT backing device; NULL = not about one, or not known
-- @column   cgroup_ino INTEGER cgroup; NULL = the finding is not about one
-- @column   cost_task_ns INTEGER time that all tasks together lost to it
-- @column   stalls_count INTEGER waits
-- @column   longest_ns INTEGER longest wait
-- @column   call_max_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up in all, of the calls that were held up longest by this one;
--   NULL = no such call
-- @column   call_part_ns INTEGER the same, without what other findings tell of
-- @column   tasks_count INTEGER threads that lost it
-- @column   tasks TEXT who lost it: dd 399; 4 dd; dd and fio; 2 dd and 1 fio;
--   dd, fio and 2 more; of each task the name under which it lost most
-- @column   first_ts INTEGER ns, start of the first wait
-- @column   last_ts INTEGER ns, end of the last
-- @column   device_ratio REAL share of the time in which the device had
--   requests; NULL = not recorded
-- @column   proved_ratio REAL share of the time in waits whose cause is proved
-- @column   life_ratio REAL of the life of the task that lost most of its own,
--   what it lost
-- @column   wrote_disk TEXT where nothing tells on which disks the device lies:
--   as in wb_stall
-- @column   wrote_disks TEXT likewise
-- @materialize
-- @cost     75
CREATE VIEW wb_loss_total AS
WITH
  chosen AS (
    SELECT
      l.finding,
      finding_bdi!(l) AS bdi,
      finding_cgroup!(l) AS cgroup_ino,
      l.tid, l.task_id, l.comm, l.ts, l.dur, l.device_ratio, l.call_seq,
      l.wrote_disk, l.wrote_disks, l.is_proved, l.life_ns
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding IS NOT NULL AND in_time!(l.ts, b)
  ),
  per_task AS (
    SELECT
      c.finding, c.bdi, c.cgroup_ino, c.comm, c.tid, c.task_id,
      sum(c.dur) AS dur,
      count(*) AS stalls_count,
      max(c.dur) AS longest_ns,
      min(c.ts) AS first_ts,
      max(c.ts + c.dur) AS last_ts,
      sum(c.dur * c.device_ratio) AS device_ns,
      sum(CASE WHEN c.device_ratio IS NOT NULL THEN c.dur END) AS watched_ns,
      min(c.wrote_disk) AS wrote_disk,
      min(c.wrote_disks) AS wrote_disks,
      sum(c.dur * c.is_proved) AS proved_ns,
      1.0 * sum(c.dur) / nullif(max(c.life_ns), 0) AS life_ratio
    FROM chosen AS c
    GROUP BY c.finding, c.bdi, c.cgroup_ino, c.comm, c.tid, c.task_id
  ),
  called AS (
    SELECT
      t.*,
      first_value(t.comm) OVER (
        PARTITION BY t.finding, t.bdi, t.cgroup_ino, t.tid
        ORDER BY t.dur DESC, t.comm
      ) AS name
    FROM per_task AS t
  ),
  per_name AS (
    SELECT
      t.finding, t.bdi, t.cgroup_ino,
      t.name AS comm,
      count(DISTINCT t.tid) AS tasks_count,
      min(t.tid) AS tid,
      sum(t.dur) AS dur,
      row_number() OVER (
        PARTITION BY t.finding, t.bdi, t.cgroup_ino
        ORDER BY sum(t.dur) DESC, t.name
      ) AS place
    FROM called AS t
    GROUP BY t.finding, t.bdi, t.cgroup_ino, t.name
  ),
  named AS (
    SELECT
      n.finding, n.bdi, n.cgroup_ino,
      sum(n.tasks_count) AS tasks_count,
      count(*) AS names_count,
      max(CASE n.place WHEN 1 THEN n.comm END) AS first_comm,
      max(CASE n.place WHEN 1 THEN n.tasks_count END) AS first_count,
      max(
        CASE
          WHEN n.place > 1 THEN NULL
          WHEN n.tasks_count > 1 THEN n.tasks_count || ' ' || n.comm
          WHEN n.comm = 'tid ' || n.tid THEN n.comm
          ELSE n.comm || ' ' || n.tid
        END
      ) AS first_name,
      max(CASE n.place WHEN 2 THEN n.comm END) AS second_comm,
      max(CASE n.place WHEN 2 THEN n.tasks_count END) AS second_count,
      max(CASE n.place WHEN 2 THEN n.dur END)
        >= v.named_least_ratio * sum(n.dur) AS is_second_named
    FROM per_name AS n
    CROSS JOIN wb_rule AS v
    GROUP BY n.finding, n.bdi, n.cgroup_ino, v.named_least_ratio
  ),
  -- A call may go on under another finding: as in lost_time.
  held AS (
    SELECT c.finding, c.bdi, c.cgroup_ino, c.call_seq, sum(c.dur) AS held_ns
    FROM chosen AS c
    WHERE c.call_seq IS NOT NULL
    GROUP BY c.call_seq, c.finding, c.bdi, c.cgroup_ino
  ),
  call AS (
    SELECT
      h.finding, h.bdi, h.cgroup_ino,
      max(o.call_ns) AS call_max_ns,
      max(h.held_ns) AS call_part_ns
    FROM held AS h
    JOIN (
      SELECT
        l.call_seq,
        sum(l.held_ns) AS call_ns,
        max(l.held_ns) AS most_ns
      FROM held AS l
      GROUP BY l.call_seq
    ) AS o ON o.call_seq = h.call_seq AND o.most_ns = h.held_ns
    GROUP BY h.finding, h.bdi, h.cgroup_ino
  ),
  summed AS (
    SELECT
      t.finding, t.bdi, t.cgroup_ino,
      sum(t.dur) AS cost_task_ns,
      sum(t.stalls_count) AS stalls_count,
      max(t.longest_ns) AS longest_ns,
      min(t.first_ts) AS first_ts,
      max(t.last_ts) AS last_ts,
      sum(t.device_ns) / nullif(sum(t.watched_ns), 0) AS device_ratio,
      min(t.wrote_disk) AS wrote_disk,
      min(t.wrote_disks) AS wrote_disks,
      1.0 * sum(t.proved_ns) / sum(t.dur) AS proved_ratio,
      max(t.life_ratio) AS life_ratio
    FROM per_task AS t
    GROUP BY t.finding, t.bdi, t.cgroup_ino
  )
SELECT
  s.finding, s.bdi, s.cgroup_ino, s.cost_task_ns, s.stalls_count, s.longest_ns,
  c.call_max_ns, c.call_part_ns, n.tasks_count,
  CASE
    WHEN n.names_count = 1 THEN n.first_name
    WHEN n.is_second_named = 0
      THEN n.first_name || ' and ' || (n.tasks_count - n.first_count) || ' more'
    ELSE
      -- A number with each, or with none.
      CASE WHEN n.first_count > 1 OR n.second_count > 1
        THEN n.first_count || ' '
        ELSE ''
      END || n.first_comm
        || CASE n.names_count WHEN 2 THEN ' and ' ELSE ', ' END
        || CASE WHEN n.first_count > 1 OR n.second_count > 1
          THEN n.second_count || ' '
          ELSE ''
        END || n.second_comm
        || CASE n.names_count
          WHEN 2 THEN ''
          ELSE ' and ' || (n.tasks_count - n.first_count - n.second_count)
            || ' more'
        END
  END AS tasks,
  s.first_ts, s.last_ts, s.device_ratio,
  s.proved_ratio, s.life_ratio, s.wrote_disk, s.wrote_disks
FROM summed AS s
JOIN named AS n
  ON n.finding = s.finding
  AND n.bdi IS s.bdi
  AND n.cgroup_ino IS s.cgroup_ino
LEFT JOIN call AS c
  ON c.finding = s.finding
  AND c.bdi IS s.bdi
  AND c.cgroup_ino IS s.cgroup_ino;

-- @view     wb_impossible
-- @shared
-- @summary  Numbers of pages in events that no machine can have.
-- @grain    event, kind of number; order event, what
-- @optional writeback:balance_dirty_pages, writeback:global_dirty_state
-- @column   event TEXT sleeps of throttled tasks, or events of
--   global_dirty_state
-- @column   what TEXT the number, and why it is impossible
-- @column   is_sure INTEGER 0: the threshold may have fallen before the trace
-- @column   rows_count INTEGER of these, with it
-- @column   events_count INTEGER all of these
-- @source   docs/findings.md
-- @materialize
CREATE VIEW wb_impossible AS
WITH
  told AS (
    SELECT
      'sleeps of throttled tasks' AS event,
      min(
        min(c.dirty_bytes),
        coalesce(min(c.wb_dirty_bytes), 0),
        coalesce(min(c.limit_bytes), 0)
      ) / u.page_bytes AS least,
      max(c.dirty_bytes) / u.page_bytes AS most,
      u.memory_bytes / u.page_bytes AS memory,
      NULL AS far
    FROM wb_units AS u
    LEFT JOIN wb_throttle_cause AS c ON 1 = 1
    GROUP BY u.memory_bytes, u.page_bytes
    UNION ALL
    SELECT
      'events of global_dirty_state',
      e.least_pages,
      e.dirty_max_bytes / u.page_bytes,
      u.memory_bytes / u.page_bytes,
      -- It falls slowly to a threshold that was lowered, in the run or before
      -- the part that is asked for. That is 0 where low memory is full.
      CASE
        WHEN p.t0_ns IS NULL
          AND p.t1_ns IS NULL
          AND e.limit_max_bytes = e.limit_min_bytes
          AND e.limit_min_bytes >= v.impossible_factor * e.thresh_max_bytes
          AND e.thresh_max_bytes > 0
          THEN (e.limit_max_bytes / u.page_bytes) || ' of '
            || (e.thresh_max_bytes / u.page_bytes) || ' pages'
      END
    FROM dirty_limits AS e
    CROSS JOIN wb_params AS p
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
  ),
  found AS (
    SELECT
      t.event,
      CASE
        WHEN t.least < 0 THEN 'A count of pages is below zero (' || t.least
          || ')'
        WHEN t.most > t.memory
          THEN 'More pages are dirty than the machine has (' || t.most || ' of '
            || t.memory || ')'
        ELSE 'The limit is fifty times the threshold and more (' || t.far || ')'
      END AS what,
      t.least < 0 AS is_below,
      t.far, t.memory
    FROM told AS t
    WHERE t.least < 0 OR t.most > t.memory OR t.far IS NOT NULL
  )
SELECT
  f.event, f.what,
  f.far IS NULL AS is_sure,
  -- Counted only where one was found.
  count(
    CASE
      WHEN f.is_below THEN n.least < 0
      WHEN f.far IS NOT NULL THEN 1
      ELSE n.most > f.memory
    END OR NULL
  ) AS rows_count,
  count(*) AS events_count
FROM found AS f
JOIN (
  SELECT
    'sleeps of throttled tasks' AS event,
    min(
      c.dirty_bytes, coalesce(c.wb_dirty_bytes, 0), coalesce(c.limit_bytes, 0)
    ) AS least,
    c.dirty_bytes / o.page_bytes AS most
  FROM wb_units AS o
  CROSS JOIN wb_throttle_cause AS c
  UNION ALL
  SELECT
    'events of global_dirty_state',
    min(g.nr_dirty, g.nr_writeback, coalesce(g.dirty_limit, 0)),
    g.nr_dirty + g.nr_writeback
  FROM raw_global_dirty_state AS g
) AS n ON n.event = f.event
GROUP BY f.event, f.what;

-- @view     wb_timeline_order
-- @shared
-- @summary  Groups of the timeline that come first in this run: those about
--   what its tasks waited for longest.
-- @grain    group; order place
-- @column   group_name TEXT as in @group of sql/timelines
-- @column   place INTEGER order among them
-- @column   is_top INTEGER 1: it stands beside the group of all, so that a UI
--   that shows that one closed shows this one
CREATE VIEW wb_timeline_order AS
WITH
  waited AS (
    SELECT
      CASE
        WHEN s.kind = 'throttle' THEN 'throttling'
        WHEN s.kind IN ('direct reclaim', 'memcg reclaim', 'reclaim throttle')
          THEN 'reclaim'
        ELSE 'disk'
      END AS subject,
      sum(s.dur) AS total_ns
    FROM wb_stall AS s
    -- Mostly of the kernel's own threads.
    WHERE s.kind <> 'block queue'
    GROUP BY 1
  ),
  -- step 0 and 1 of the first subject are on the first screen.
  member(subject, place, step, group_name) AS (
    SELECT 'throttling', 1, 0, 'Dirty pages'
    UNION ALL SELECT 'throttling', 1, 1, 'Fairness'
    UNION ALL SELECT 'throttling', 1, 2, 'Throttled tasks'
    UNION ALL SELECT 'reclaim', 2, 0, 'Reclaim'
    UNION ALL SELECT 'reclaim', 2, 2, 'Zones'
    UNION ALL SELECT 'disk', 3, 0, 'Block requests'
    UNION ALL SELECT 'disk', 3, 2, 'Flusher work'
  ),
  ranked AS (
    SELECT
      m.group_name, m.step,
      dense_rank() OVER (ORDER BY coalesce(w.total_ns, 0) DESC, m.place)
        AS subject_place
    FROM member AS m
    LEFT JOIN waited AS w ON w.subject = m.subject
  ),
  listed AS (
    SELECT 'What to look at' AS group_name, 1 AS place, 0 AS is_top
    UNION ALL
    SELECT 'Stalls', 2, 1
    UNION ALL
    SELECT
      r.group_name,
      2 + row_number() OVER (ORDER BY r.subject_place, r.step),
      CASE
        WHEN r.subject_place = 1 AND r.step < 2 THEN 1
        -- Top groups are in the order of their names: not before Reclaim.
        WHEN r.group_name = 'Fairness' AND f.group_name <> 'Reclaim' THEN 1
        ELSE 0
      END
    FROM ranked AS r
    JOIN ranked AS f ON f.subject_place = 1 AND f.step = 0
  )
SELECT l.group_name, l.place, l.is_top
FROM listed AS l;
