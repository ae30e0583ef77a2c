-- SPDX-License-Identifier: Apache-2.0
-- @finding   began_before
-- @title     Tasks waited since before this part
-- @summary   Of a part of the trace: tasks waited in it, other than for
--   throttling, since before it began. A wait is counted by its rule in the
--   part in which it begins.
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} of this part of the trace in waits
--   that began before it ({causes:raw}), the longest {longest_ns} in all.
-- @evidence  stalls_before: cost_task_ns = sum(inside_ns, is_told=1);
--   longest_ns = max(dur, is_told=1)
-- @advice    Ask for a part that these waits begin in, or for the whole run:
--   there the rule of each wait counts it.
-- @column    cost_task_ns INTEGER time that tasks waited so in the part
-- @column    longest_ns INTEGER the longest of these waits, with its time
--   before the part and behind it
-- @column    tasks TEXT who did
-- @column    causes TEXT why, as in stalls
-- @column    first_ts INTEGER ns, start of the first of these waits
-- @column    last_ts INTEGER ns, start of the last
-- @source    docs/findings.md
WITH
  told AS (
    SELECT
      l.ts, l.dur, l.inside_ns,
      -- A thread may have had several names.
      first_value(l.comm) OVER (
        PARTITION BY l.tid ORDER BY l.inside_ns DESC, l.comm
      ) AS comm,
      l.tid, l.cause
    FROM stalls_before AS l
    WHERE l.is_told = 1
  ),
  named AS (
    SELECT
      t.comm,
      count(DISTINCT t.tid) AS tasks_count,
      min(t.tid) AS tid,
      row_number() OVER (ORDER BY sum(t.inside_ns) DESC, t.comm) AS place
    FROM told AS t
    GROUP BY t.comm
  ),
  who AS (
    SELECT
      sum(n.tasks_count) AS tasks_count,
      count(*) AS names_count,
      max(CASE n.place WHEN 1 THEN n.comm END) AS comm,
      max(CASE n.place WHEN 1 THEN n.tid END) AS tid,
      max(CASE n.place WHEN 1 THEN n.tasks_count END) AS first_count
    FROM named AS n
  )
SELECT
  sum(t.inside_ns) AS cost_task_ns,
  max(t.dur) AS longest_ns,
  CASE
    WHEN w.tasks_count = 1 THEN task_name!(w)
    WHEN w.names_count = 1 THEN w.tasks_count || ' ' || w.comm
    ELSE
      -- A number with each, or with none, as in wb_loss_total.
      CASE w.first_count WHEN 1 THEN '' ELSE w.first_count || ' ' END
        || w.comm || ' and ' || (w.tasks_count - w.first_count) || ' more'
  END AS tasks,
  (
    SELECT group_concat(c.cause, ', ')
    FROM (SELECT DISTINCT o.cause FROM told AS o ORDER BY o.cause) AS c
  ) AS causes,
  min(t.ts) AS first_ts,
  max(t.ts) AS last_ts
FROM told AS t
CROSS JOIN who AS w
CROSS JOIN wb_rule AS v
GROUP BY w.tasks_count, w.names_count, w.comm, w.tid, w.first_count,
  v.loss_least_ns
HAVING sum(t.dur) >= v.loss_least_ns
ORDER BY cost_task_ns;
