-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_look
-- @title    What to look at
-- @order    10
-- @group    What to look at: Begin here. Episodes in which tasks were held up
--   for one cause, those that cost most of their time; and places where numbers
--   are too small because events are lost.
-- @track    What to look at: episodes, named by what all tasks together lost,
--   who lost it and to what; gaps of lost events, damage
-- @summary  The episodes that cost tasks most time, the largest gaps of lost
--   events, and whether the trace is damaged.
-- @grain    episode or gap; order ts
-- @flat
-- @column   arg_why TEXT who lost how much time to what
-- @column   arg_advice TEXT what to change; NULL = nothing
-- @column   arg_query TEXT command that lists the waits
-- @column   arg_lost_ns INTEGER time of all tasks together
-- @column   arg_tasks TEXT names of the tasks, the first by time
-- @column   arg_tasks_count INTEGER tasks
-- @column   arg_waits_count INTEGER waits
-- @column   arg_longest_ns INTEGER longest wait
-- @column   arg_kind TEXT of the waits, as in stalls
-- @column   arg_cause TEXT as in stalls
-- @column   arg_finding TEXT rule of sql/findings that tells of them
-- @column   arg_bdi TEXT backing device; NULL = not known
-- @column   arg_cpu INTEGER of a gap; NULL = not told
-- @column   arg_count INTEGER events lost in it; NULL = not told
-- @column   arg_damage TEXT what is wrong with the trace
-- @cost     220
CREATE VIEW tl_look AS
WITH
  loss AS (
    SELECT
      l.ts,
      l.ts + l.dur AS end_ts,
      l.dur, l.task_id, l.tid, l.comm, l.kind, l.cause, l.finding, l.bdi
    FROM wb_loss AS l
    -- Who sent a request need not wait for it.
    WHERE l.dur > 0 AND l.kind <> 'block queue'
  ),
  -- An episode ends where nobody waited for as long as a healthy pause.
  marked AS (
    SELECT
      l.*,
      CASE
        WHEN l.ts <= r.pause_max_ns + max(l.end_ts) OVER (
          PARTITION BY l.kind, l.cause, l.finding, l.bdi ORDER BY l.ts, l.end_ts
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) THEN 0
        ELSE 1
      END AS is_new
    FROM loss AS l
    CROSS JOIN wb_rule AS r
  ),
  numbered AS (
    SELECT
      m.*,
      sum(m.is_new) OVER (
        PARTITION BY m.kind, m.cause, m.finding, m.bdi ORDER BY m.ts, m.end_ts
        ROWS UNBOUNDED PRECEDING
      ) AS episode
    FROM marked AS m
  ),
  by_task AS (
    SELECT
      n.kind, n.cause, n.finding, n.bdi, n.episode, n.task_id,
      min(n.tid) AS tid,
      min(n.comm) AS comm,
      min(n.ts) AS ts,
      max(n.end_ts) AS end_ts,
      sum(n.dur) AS lost_ns,
      count(*) AS waits_count,
      max(n.dur) AS longest_ns
    FROM numbered AS n
    GROUP BY n.kind, n.cause, n.finding, n.bdi, n.episode, n.task_id
  ),
  episode AS (
    SELECT
      t.kind, t.cause, t.finding, t.bdi, t.episode,
      min(t.ts) AS ts,
      max(t.end_ts) AS end_ts,
      sum(t.lost_ns) AS lost_ns,
      count(*) AS tasks_count,
      sum(t.waits_count) AS waits_count,
      max(t.longest_ns) AS longest_ns,
      min(t.tid) AS tid,
      CASE
        WHEN min(t.comm) = max(t.comm) THEN min(t.comm)
        ELSE min(t.comm) || ', ' || max(t.comm)
          || CASE WHEN count(DISTINCT t.comm) > 2 THEN ' ...' ELSE '' END
      END AS tasks
    FROM by_task AS t
    GROUP BY t.kind, t.cause, t.finding, t.bdi, t.episode
  ),
  ranked AS (
    SELECT
      e.*,
      row_number() OVER (ORDER BY e.lost_ns DESC, e.ts, e.kind, e.cause)
        AS place,
      CASE
        WHEN e.lost_ns >= 1e9 THEN printf('%.1f s', e.lost_ns / 1e9)
        ELSE printf('%d ms', round(e.lost_ns / 1e6))
      END AS shortly,
      printf('%.2f s', e.lost_ns / 1e9) AS lost,
      CASE e.cause WHEN 'unknown' THEN e.kind ELSE e.cause END
        || coalesce(' of ' || coalesce(d.device, e.bdi), '') AS what
    FROM episode AS e
    LEFT JOIN wb_device AS d ON d.bdi = e.bdi
  ),
  gap AS (
    SELECT
      l.ts, l.cpu, l.count,
      row_number() OVER (ORDER BY l.count IS NULL, l.count DESC, l.ts, l.cpu)
        AS place
    FROM raw_lost_events AS l
  ),
  advised AS (
    SELECT f.id, min(f.advice) AS advice
    FROM wb_finding AS f
    GROUP BY f.id
  )
SELECT
  r.ts,
  r.end_ts - r.ts AS dur,
  'Writeback/What to look at' AS track,
  r.shortly || ' lost by '
    || CASE r.tasks_count
      WHEN 1 THEN r.tasks || ' ' || r.tid
      ELSE r.tasks_count || ' tasks'
    END
    || ': ' || r.what AS name,
  NULL AS value,
  NULL AS unit,
  CASE WHEN r.tasks_count > 1 THEN r.tasks_count || ' ' ELSE '' END || r.tasks
    || ' lost ' || r.lost || ' in ' || r.waits_count
    || CASE r.waits_count WHEN 1 THEN ' wait (' ELSE ' waits (' END || r.kind
    || '): ' || r.what AS arg_why,
  a.advice AS arg_advice,
  'wbscope query lost_time RUN' AS arg_query,
  r.lost_ns AS arg_lost_ns,
  r.tasks AS arg_tasks,
  r.tasks_count AS arg_tasks_count,
  r.waits_count AS arg_waits_count,
  r.longest_ns AS arg_longest_ns,
  r.kind AS arg_kind,
  r.cause AS arg_cause,
  r.finding AS arg_finding,
  r.bdi AS arg_bdi,
  NULL AS arg_cpu,
  NULL AS arg_count,
  NULL AS arg_damage
FROM ranked AS r
CROSS JOIN wb_rule AS v
LEFT JOIN advised AS a ON a.id = r.finding
-- The first is there however little it cost.
WHERE r.place <= 6 AND (r.place = 1 OR r.lost_ns >= v.loss_least_ns)
UNION ALL
SELECT
  g.ts, NULL,
  'Writeback/What to look at',
  coalesce(g.count || ' ', '')
    || 'events lost'
    || coalesce(' on cpu ' || g.cpu, ''),
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, g.cpu, g.count, NULL
FROM gap AS g
WHERE g.place <= (SELECT v.listed_most_count FROM wb_rule AS v)
UNION ALL
SELECT
  b.last_ts, NULL,
  'Writeback/What to look at',
  'the trace is damaged and was read only in part',
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL,
  m.value
FROM raw_meta AS d
CROSS JOIN wb_bounds AS b
LEFT JOIN raw_meta AS m ON m.key = 'damage'
WHERE d.key = 'damaged' AND d.value = 1;
