-- SPDX-License-Identifier: Apache-2.0
-- What a person reads first: the verdict, where to look, what was lost.

-- @timeline tl_verdict
-- @title    The verdict
-- @order    1
-- @parent
-- @spanning
-- @sorted
-- @track    Writeback: what is wrong, the costliest first, or that nothing is,
--   and what to do about the first; wbscope explain says it with evidence
-- @summary  The findings of the run that matter most, in words, over the time
--   that they are about.
-- @grain    finding, and what to do; order rank
-- @column   arg_text TEXT what is wrong, with the numbers; NULL = what to do
-- @column   arg_advice TEXT what to change; NULL = nothing
-- @column   arg_evidence TEXT commands that show the numbers
-- @column   arg_rule TEXT rule of sql/findings; NULL = what to do
-- @column   arg_severity TEXT severe, warning or ok
-- @column   arg_confidence TEXT measured, inferred or cannot tell
-- @column   arg_cost_task_ns INTEGER time that all tasks together lost to it
CREATE VIEW tl_verdict AS
WITH
  told AS (
    SELECT f.*
    FROM wb_finding AS f
    WHERE f.place = 1
      OR (f.severity IN ('severe', 'warning', 'ok') AND f.place <= 3)
  ),
  -- One row for each, the first on top, and below it what to do.
  line AS (
    SELECT
      2 * t.place AS place,
      t.severity || ': ' || t.text
        || CASE t.confidence WHEN 'measured' THEN ''
          ELSE ' (' || t.confidence || ')'
        END AS name,
      t.text, t.advice, t.evidence, t.id, t.severity, t.confidence,
      t.cost_task_ns
    FROM told AS t
    UNION ALL
    SELECT
      2 * t.place + 1, 'to do: ' || t.advice, NULL, NULL, NULL, NULL, NULL,
      NULL, NULL
    FROM told AS t
    WHERE t.advice IS NOT NULL
      AND t.place = (SELECT min(o.place) FROM told AS o)
  )
SELECT
  b.first_ts AS ts,
  -- All of the run, whatever it is about; one event alone has to be seen, too.
  max(b.last_ts - b.first_ts, u.ms_ns) AS dur,
  'Writeback' AS track,
  l.name,
  NULL AS value,
  NULL AS unit,
  l.place AS rank,
  l.text AS arg_text,
  l.advice AS arg_advice,
  l.evidence AS arg_evidence,
  l.id AS arg_rule,
  l.severity AS arg_severity,
  l.confidence AS arg_confidence,
  l.cost_task_ns AS arg_cost_task_ns
FROM line AS l
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
ORDER BY l.place;

-- @timeline tl_look
-- @title    What to look at
-- @order    10
-- @group    What to look at: Begin here. Episodes in which tasks were blocked
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

-- @timeline tl_lost_events
-- @title    Lost events
-- @order    150
-- @group    Lost events: Where the ring buffer overran. What lies before a
--   mark, back to the CPU's event before it, is missing from every number.
-- @track    cpu *: gaps in what this CPU recorded; the mark is at the first
--   event after the gap
-- @track    any cpu: gaps that are not of one CPU
-- @summary  Where the ring buffer overran: sums over events are too small
--   there.
-- @grain    gap; order ts
-- @column   arg_cpu INTEGER of the gap; NULL = not told
-- @column   arg_count INTEGER events lost in it; NULL = not told
CREATE VIEW tl_lost_events AS
SELECT
  l.ts,
  NULL AS dur,
  'Writeback/Lost events/' || coalesce('cpu ' || l.cpu, 'any cpu') AS track,
  coalesce(l.count || ' ', '') || 'events lost' AS name,
  NULL AS value,
  NULL AS unit,
  l.cpu AS rank,
  l.cpu AS arg_cpu,
  l.count AS arg_count
FROM raw_lost_events AS l;
