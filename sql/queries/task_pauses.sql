-- SPDX-License-Identifier: Apache-2.0
-- Throttled tasks.

-- @query    task_pauses
-- @title    Pauses of each task over time
-- @summary  The pauses that balance_dirty_pages() ordered each task in each
--   window, and what each call was charged for.
-- @read     With small windows a row is one pause. pause below 0: the task was
--   late by more than its pages cost, as a rule because it slept elsewhere, and
--   did not pause. paused above 0: the call went round its loop, as the limit
--   was reached. Events that charged nothing and were not slept after are left
--   out.
-- @filters  window, range, bdi, tid, task, cgroup
-- @grain    window, task under a name, bdi, cgroup; order window_start_ns, tid,
--   bdi, cgroup_ino
-- @events   writeback:balance_dirty_pages
-- @column   steps_count INTEGER events that charged pages or were slept after
-- @column   pauses_count INTEGER of them, with a pause above 0
-- @column   pause_max_ns INTEGER longest intended sleep
-- @column   pause_min_ns INTEGER shortest; 0 or less = no sleep
-- @column   paused_max_ns INTEGER longest time that a call had taken so far
--   when it was told to pause again
-- @column   think_mean_ns REAL time since the scheduled end of the pause before
-- @column   period_mean_ns REAL time that the dirtied pages are worth; NULL =
--   not recorded
-- @column   charged_mean_bytes REAL pages that a call was charged for
-- @column   lost_gaps_count INTEGER gaps in the window, where events are lost
-- @source   graph balance_dirty_pages-pause of 2011-02; mm/page-writeback.c
--   balance_dirty_pages()
-- @cost     200
WITH
  summed AS (
    SELECT
      (t.ts - b.start_ts) / p.window_ns AS window_index,
      t.task_id, t.bdi, t.cgroup_ino,
      count(*) AS steps_count,
      sum(CASE WHEN t.pause_ns > 0 THEN 1 ELSE 0 END) AS pauses_count,
      max(t.pause_ns) AS pause_max_ns,
      min(t.pause_ns) AS pause_min_ns,
      max(t.paused_ns) AS paused_max_ns,
      avg(t.think_ns) AS think_mean_ns,
      avg(t.period_ns) AS period_mean_ns,
      avg(CASE WHEN t.accounted_bytes > 0 THEN t.accounted_bytes END)
        AS charged_mean_bytes
    FROM wb_throttle AS t
    CROSS JOIN wb_bounds AS b
    CROSS JOIN wb_params AS p
    WHERE t.is_step = 1
      AND in_time!(t.ts, b)
      AND of_wb!(t, p)
      AND (p.tid IS NULL OR t.tid = p.tid)
    GROUP BY window_index, t.task_id, t.bdi, t.cgroup_ino
  )
SELECT
  w.window_start_ns, k.tid, k.comm, s.bdi, s.cgroup_ino, s.steps_count,
  s.pauses_count, s.pause_max_ns, s.pause_min_ns, s.paused_max_ns,
  s.think_mean_ns, s.period_mean_ns, s.charged_mean_bytes,
  w.lost_gaps_count
FROM summed AS s
CROSS JOIN wb_params AS p
JOIN wb_window AS w ON w.window_index = s.window_index
JOIN wb_task AS k ON k.task_id = s.task_id
WHERE p.comm_glob IS NULL OR k.comm GLOB p.comm_glob
ORDER BY w.window_start_ns, k.tid, k.task_id, s.bdi, s.cgroup_ino;
