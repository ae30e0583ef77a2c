-- SPDX-License-Identifier: Apache-2.0
-- @finding   cause_unknown
-- @title     Why writers wait is not known
-- @summary   Tasks were throttled, and the trace does not show which limit
--   throttled them or whether their device was busy: its requests, the samples
--   of its counters and the kernel's estimate of its bandwidth are missing, or
--   say that it was not. A warning where a task was asleep for more than a
--   fifth of its life, or one write was blocked for half a second or more; else
--   a note.
-- @when      cause_unknown
-- @severity  warning
-- @confidence cannot tell
-- @sentence  {tasks} waited {cost_task_ns} writing to {bdi}[, and dirtied
--   {dirtied_bytes_per_s}][; {longest:raw} was asleep for {asleep_ratio} of its
--   {life_ns}][; one write was blocked for {call_part_ns} of that]; {why:raw}[
--   {idle_ratio} of that time, and what blocked them then is not known][; the
--   kernel estimates {estimate_bytes_per_s} for the device].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=cause_unknown,
--   bdi={bdi}); call_part_ns = max(call_part_max_ns, finding=cause_unknown,
--   bdi={bdi}); life_ns = max(life_ns, tid={tid}); asleep_ratio =
--   max(asleep_ratio, tid={tid})
-- @advice    Record {missing:raw} as well: wbscope record --profile deep
--   --duration 30s -o RUN.
-- @events    writeback:balance_dirty_pages
-- @column    severity TEXT warning or note
-- @column    asleep_ratio REAL share of its life that the task which slept most
--   was asleep; NULL = a fifth or less
-- @column    tid INTEGER that task
-- @column    life_ns INTEGER how long it was seen
-- @column    longest TEXT its name
-- @column    dirtied_bytes_per_s REAL what throttled tasks dirtied for the
--   device; NULL = not known
-- @column    call_part_ns INTEGER longest that one call of
--   balance_dirty_pages() was held up for this reason; NULL = that is not felt
-- @column    why TEXT what is not known
-- @column    idle_ratio REAL share of the waits without a request on the
--   device; NULL = not recorded
-- @column    estimate_bytes_per_s REAL mean of avg_write_bw; NULL = not
--   recorded
-- @column    missing TEXT what would tell
-- @source    mm/page-writeback.c balance_dirty_pages()
WITH
  estimated AS (
    SELECT w.bdi, avg(w.avg_write_bw_bytes_per_s) AS bytes_per_s
    FROM wb_bandwidth AS w
    GROUP BY w.bdi
  ),
  asleep AS (
    SELECT
      a.asleep_bdi AS bdi,
      a.tid, a.comm, a.life_ns, a.asleep_ratio,
      row_number() OVER (
        PARTITION BY a.asleep_bdi ORDER BY a.asleep_ns DESC, a.tid
      ) AS place
    FROM wb_loss AS a
    CROSS JOIN wb_rule AS v
    WHERE a.asleep_ratio > v.held_least_ratio
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN a.tid IS NOT NULL OR t.call_max_ns >= v.long_call_ns THEN 'warning'
    ELSE 'note'
  END AS severity,
  t.tasks, t.bdi, a.asleep_ratio, a.tid, a.life_ns,
  task_name!(a) AS longest,
  (
    SELECT
      1.0 * sum(c.accounted_bytes) * u.second_ns
        / nullif(max(c.ts) - min(c.ts), 0)
    FROM wb_throttle AS c
    WHERE c.is_step = 1 AND c.bdi = t.bdi AND in_time!(c.ts, b)
  ) AS dirtied_bytes_per_s,
  CASE WHEN t.call_part_ns >= v.long_call_ns THEN t.call_part_ns END
    AS call_part_ns,
  CASE WHEN t.device_ratio IS NULL
    THEN 'whether the device is that slow was not recorded'
    ELSE 'the device was idle for'
  END AS why,
  1 - t.device_ratio AS idle_ratio,
  e.bytes_per_s AS estimate_bytes_per_s,
  CASE WHEN t.device_ratio IS NULL
    THEN 'the requests of its device'
      || CASE WHEN EXISTS (SELECT 1 FROM raw_global_dirty_state) THEN ''
        ELSE ' and the dirty limits'
      END
    WHEN EXISTS (SELECT 1 FROM raw_global_dirty_state)
      THEN 'what the flushers do'
    ELSE 'the dirty limits (global_dirty_state)'
  END AS missing,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_bounds AS b
CROSS JOIN wb_units AS u
LEFT JOIN asleep AS a ON a.bdi = t.bdi AND a.place = 1
LEFT JOIN estimated AS e ON e.bdi = t.bdi
WHERE t.finding = 'cause_unknown' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi;
