-- SPDX-License-Identifier: Apache-2.0
-- @finding   no_writeback
-- @title     Writers wait and nothing is written
-- @summary   Tasks were throttled while no page was under writeback and their
--   device had no request; or, where requests were not recorded, no page was
--   written all the time, by nr_written, for five seconds and more whatever was
--   under writeback, or by flushers that began and ended without a page. Only
--   where that was most of the time that they were throttled: less is the
--   moment before the flusher wakes.
-- @when      no_writeback
-- @severity  severe
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} while nothing was written to {bdi}:
--   {proof:raw}, for {share_ratio} of the time that its writers were throttled.
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=no_writeback,
--   bdi={bdi}); share_ratio = sum(total_ns, finding=no_writeback, bdi={bdi}) /
--   sum(total_ns, kind=throttle, bdi={bdi})
-- @advice    [{away_bdi} got pages and completed none: look at it, at its
--   server, if it has one, and at the log of the kernel.][The trace does not
--   show why {flusher:raw} did not write: look at what it waited for (its
--   stack, the log of the kernel). Kernels with commit 64dd89ae01f2 and without
--   cece9dc61daa (release candidates of 7.0) do not start it for writers over a
--   strict limit or the limits of their memory cgroup: do not use these.]
-- @set       /sys/class/bdi/{strict_bdi:raw}/strict_limit = {lax:raw}
-- @costs     [{strict_bdi} may fill more of the pool that all writers share.]
-- @expect    throttle_summary.slept_total_ns lower
-- @events    writeback:balance_dirty_pages
-- @optional  writeback:global_dirty_state, block:block_rq_issue,
--   writeback:writeback_written
-- @column    strict_bdi TEXT the same; NULL = it was not over a strict limit,
--   or the kernel has no file to change that, from 6.2 on
-- @column    lax INTEGER 0, where it is to be set
-- @column    proof TEXT what shows it
-- @column    away_bdi TEXT the same where pages were under writeback; else NULL
-- @column    flusher TEXT the flusher, where none was; else NULL
-- @column    share_ratio REAL share of the time that its writers were throttled
-- @source    mm/page-writeback.c balance_dirty_pages():
--   wb_start_background_writeback()
WITH
  held AS (
    SELECT
      l.bdi,
      sum(l.dur) AS dur,
      max(l.runs_count) AS runs_count,
      max(CASE l.finding WHEN 'no_writeback' THEN l.nr_writeback END)
        AS nr_writeback,
      max(l.finding IS 'no_writeback' AND l.cause = 'strictlimit') AS is_strict
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle' AND in_time!(l.ts, b)
    GROUP BY l.bdi
  )
SELECT
  t.cost_task_ns, t.tasks, t.bdi,
  CASE WHEN h.is_strict AND coalesce(k.version, 6002) >= 6002 THEN t.bdi END
    AS strict_bdi,
  CASE WHEN h.is_strict AND coalesce(k.version, 6002) >= 6002 THEN 0 END AS lax,
  CASE
    WHEN t.device_ratio IS NOT NULL
      THEN 'no page was under writeback and the disk had no request'
    WHEN h.nr_writeback > 0
      THEN 'pages were under writeback, but nr_written did not rise'
    WHEN h.runs_count IS NULL
      THEN 'no page was under writeback, and nr_written did not rise'
    ELSE 'its flushers began and ended ' || h.runs_count
      || ' times without a page'
  END AS proof,
  CASE WHEN h.nr_writeback > 0 THEN t.bdi END AS away_bdi,
  CASE WHEN h.nr_writeback > 0 THEN NULL ELSE 'the flusher' END AS flusher,
  1.0 * t.cost_task_ns / h.dur AS share_ratio,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS k
JOIN held AS h ON h.bdi = t.bdi
WHERE t.finding = 'no_writeback'
  AND t.cost_task_ns >= v.loss_least_ns
  AND t.cost_task_ns >= v.most_ratio * h.dur
ORDER BY t.cost_task_ns DESC, t.bdi;
