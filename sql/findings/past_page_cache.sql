-- SPDX-License-Identifier: Apache-2.0
-- @finding   past_page_cache
-- @title     Tasks wait behind what others write past the page cache
-- @summary   Half of the bytes that a disk wrote or more were submitted by
--   programs themselves: direct I/O, writes to files that are open with O_SYNC,
--   or writeback that a program starts outside of fsync. No limit of dirty
--   pages governs these, and fsync and the journal wait in the queue of the
--   disk behind them.
-- @when      past_page_cache
-- @severity  warning
-- @confidence inferred
-- @sentence  [{calls_count:call} of {call:raw} took {calls_mean_ns}][ each
--   (longest {calls_max_ns})][{full_stop:raw} ]{tasks} waited {cost_task_ns}
--   for {bdi}, {own_ratio} of whose writes {writer} submitted past the page
--   cache ({own_bytes}).
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=past_page_cache,
--   bdi={bdi})
-- @evidence  disk_writers --bdi {bdi}: own_bytes = sum(bytes, op=write,
--   way=itself); own_ratio = sum(share_ratio, op=write, way=itself)
-- @evidence  copy_and_sync: calls_count = sum(calls_count, phase={call:raw});
--   calls_mean_ns = sum(in_calls_ns, phase={call:raw}) / sum(calls_count,
--   phase={call:raw}); calls_max_ns = max(call_max_ns, phase={call:raw})
-- @advice    Give {writer} less of {bdi}: io.max of its cgroup, a target in
--   io.latency for the cgroup of those who wait, or fewer requests in flight
--   (iodepth). No limit of dirty pages changes this.
-- @events    block:block_rq_issue
-- @column    severity TEXT warning or note
-- @column    writer TEXT the task that submitted most, and how many more did
-- @column    own_ratio REAL share of the bytes that were written
-- @column    own_bytes INTEGER these
-- @column    calls_count INTEGER calls of {call} in the run; NULL = none
--   recorded
-- @column    call TEXT the call that waits until data is on the disk and took
--   longest in all
-- @column    calls_mean_ns INTEGER how long one of these took
-- @column    calls_max_ns INTEGER the longest of these; NULL = there was one
-- @column    full_stop TEXT behind what is told of calls; NULL = nothing is
-- @source    block/fops.c; mm/filemap.c generic_file_direct_write()
WITH
  own AS (
    SELECT
      w.device, w.tid, w.comm,
      sum(w.bytes) AS bytes,
      sum(w.share_ratio) AS ratio
    FROM disk_writers AS w
    WHERE w.op = 'write' AND w.way = 'itself'
    GROUP BY w.device, w.tid, w.comm
  ),
  ranked AS (
    SELECT
      o.device, o.tid, o.comm,
      row_number() OVER (
        PARTITION BY o.device ORDER BY o.bytes DESC, o.tid
      ) AS place,
      count(*) OVER device AS tasks_count,
      sum(o.bytes) OVER device AS own_bytes,
      sum(o.ratio) OVER device AS own_ratio
    FROM own AS o
    WINDOW device AS (PARTITION BY o.device)
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN max(t.longest_ns, coalesce(c.max_ns, c.mean_ns, 0)) >= v.long_call_ns
      THEN 'warning'
    -- Each is short, and yet they are much of what the task did.
    WHEN t.life_ratio >= v.held_least_ratio
      AND t.cost_task_ns >= v.long_call_ns
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  t.tasks, t.bdi,
  task_name!(o)
    || CASE WHEN o.tasks_count > 1
      THEN ' and ' || (o.tasks_count - 1) || ' more' ELSE ''
    END AS writer,
  o.own_ratio, o.own_bytes, c.calls_count, c.call,
  c.mean_ns AS calls_mean_ns,
  c.max_ns AS calls_max_ns,
  c.full_stop,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
JOIN ranked AS o ON o.device = t.bdi AND o.place = 1
LEFT JOIN sync_calls!(n) AS c ON told_calls!(c, t)
WHERE t.finding = 'past_page_cache' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
