-- SPDX-License-Identifier: Apache-2.0
-- @finding   limit_changed
-- @title     The dirty limit was changed
-- @summary   The dirty limit changed at one moment of the run. Where it fell
--   below what was dirty, tasks were throttled until the disks had written the
--   difference, which says nothing about the disks. A warning if a write was
--   blocked for half a second or more, else a note.
-- @severity  warning
-- @confidence measured
-- @sentence  [The dirty limit changed from {from_bytes} to {to_bytes} after
--   {after_ns}, when {dirty_bytes} were dirty][The dirty limit changed
--   {changes_count:time}, between {low_bytes} and {high_bytes}][: {tasks}
--   waited {held_ns} until less was dirty than the limit][{tasks} waited
--   {before_ns} until less was dirty than the limit, which was lowered before
--   this part][, and one write was blocked for {call_part_ns} of that].
-- @evidence  limit_changes: from_bytes = max(from_bytes); to_bytes =
--   max(to_bytes); after_ns = max(after_ns); dirty_bytes = max(dirty_bytes);
--   low_bytes = min(low_bytes); high_bytes = max(high_bytes); changes_count =
--   count(ts)
-- @evidence  lost_time: held_ns = sum(total_ns, finding=limit_changed);
--   before_ns = sum(total_ns, finding=limit_changed); call_part_ns =
--   max(call_part_max_ns, finding=limit_changed)
-- @advice    [Change limits while little is dirty, such as after a sync: with
--   {to_bytes} from the start no task would have waited for the pages that the
--   old limit allowed.]
-- @events    writeback:global_dirty_state
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT warning or note
-- @column   tasks TEXT who lost it; NULL = nobody
-- @column    held_ns INTEGER the same time; NULL = nobody
-- @column    before_ns INTEGER the same time, of a part that begins behind the
--   change; then held_ns is NULL
-- @column   call_part_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up for this reason
-- @column    changes_count INTEGER changes; NULL = one
-- @column    from_bytes INTEGER limit before; NULL = several changes
-- @column    to_bytes INTEGER limit behind; NULL likewise
-- @column    after_ns INTEGER when, from the trace's start; NULL likewise
-- @column    dirty_bytes INTEGER what was dirty then; NULL likewise
-- @column    low_bytes INTEGER lowest limit; NULL = one change
-- @column    high_bytes INTEGER highest limit; NULL likewise
-- @column   first_ts INTEGER ns, start of the first wait; NULL = none
-- @column   last_ts INTEGER ns, end of the last; NULL = none
-- @source    mm/page-writeback.c dirty_bytes_handler()
WITH
  counted AS (
    SELECT
      count(*) AS changes_count,
      min(c.after_ns) AS after_ns,
      min(c.from_bytes) AS from_bytes,
      min(c.to_bytes) AS to_bytes,
      min(c.dirty_bytes) AS dirty_bytes,
      min(c.low_bytes) AS low_bytes,
      max(c.high_bytes) AS high_bytes
    FROM limit_changes AS c
    HAVING count(*) > 0
  )
SELECT
  coalesce(t.cost_task_ns, 0) AS cost_task_ns,
  CASE WHEN t.call_max_ns >= v.long_call_ns THEN 'warning' ELSE 'note' END
    AS severity,
  t.tasks,
  CASE WHEN c.changes_count > 0 THEN t.cost_task_ns END AS held_ns,
  CASE WHEN c.changes_count IS NULL THEN t.cost_task_ns END AS before_ns,
  t.call_part_ns,
  CASE WHEN c.changes_count > 1 THEN c.changes_count END AS changes_count,
  CASE WHEN c.changes_count = 1 THEN c.from_bytes END AS from_bytes,
  CASE WHEN c.changes_count = 1 THEN c.to_bytes END AS to_bytes,
  CASE WHEN c.changes_count = 1 THEN c.after_ns END AS after_ns,
  CASE WHEN c.changes_count = 1 THEN c.dirty_bytes END AS dirty_bytes,
  CASE WHEN c.changes_count > 1 THEN c.low_bytes END AS low_bytes,
  CASE WHEN c.changes_count > 1 THEN c.high_bytes END AS high_bytes,
  t.first_ts, t.last_ts
FROM wb_rule AS v
LEFT JOIN counted AS c ON 1 = 1
LEFT JOIN wb_loss_total AS t ON t.finding = 'limit_changed'
WHERE c.changes_count > 0 OR t.cost_task_ns >= v.loss_least_ns
ORDER BY cost_task_ns DESC;
