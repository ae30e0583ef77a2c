-- SPDX-License-Identifier: Apache-2.0
-- @finding   flusher_waits_journal
-- @title     The flusher waits for the journal
-- @summary   A flusher thread was blocked while the journal committed: it
--   starts no writing meanwhile, and the dirty pages of all its files stay. The
--   disk goes on with what it was given before.
-- @when      flusher_waits_journal
-- @severity  note
-- @confidence measured
-- @sentence  {who:raw} waited {cost_task_ns}{in_all:raw} while the journal[ of
--   {bdi}] committed (longest {longest_ns}), and submitted no dirty pages
--   meanwhile.
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=flusher_waits_journal, bdi={bdi}); longest_ns = max(max_ns,
--   finding=flusher_waits_journal, bdi={bdi})
-- @events    sched:sched_switch|wbscope:blocked
-- @column   cost_task_ns INTEGER time that flushers lost to it
-- @column    confidence TEXT inferred where no event tells that the journal
--   woke it
-- @column   tasks TEXT flusher threads
-- @column    who TEXT the flusher, or which flushers: their times add up, also
--   where they waited together
-- @column    in_all TEXT that this is their sum; empty for one
-- @source    fs/jbd2/transaction.c start_this_handle()
SELECT
  t.cost_task_ns,
  CASE WHEN t.proved_ratio >= v.nearly_all_ratio THEN 'measured'
    ELSE 'inferred'
  END
    AS confidence,
  t.tasks,
  CASE t.tasks_count WHEN 1 THEN 'The flusher' ELSE 'Flushers (' || t.tasks
    || ')'
  END AS who,
  CASE t.tasks_count WHEN 1 THEN '' ELSE ' in all' END AS in_all,
  t.bdi, t.longest_ns, t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
WHERE t.finding = 'flusher_waits_journal'
  AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
