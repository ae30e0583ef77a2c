-- SPDX-License-Identifier: Apache-2.0
-- @finding   small_memcg_limit
-- @title     A memory cgroup is too small for the burst
-- @summary   Tasks were held up by the dirty limits of their own memory cgroup,
--   or waited while it reclaimed its memory; the machine had room. A warning
--   where they lost half a second and more, or were held for as long as a pause
--   can be (200 ms); else a note.
-- @when      small_memcg_limit
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for the limits of
--   {which}[ {cgroup_ino}][: its tasks dirtied{least:raw} {burst_bytes}, and it
--   had {dirty_max_bytes} dirty at most][; one write was held for
--   {call_least:raw}{call_max_ns}].
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=small_memcg_limit, cgroup_ino={cgroup_ino}); call_max_ns =
--   max(call_max_ns, finding=small_memcg_limit, cgroup_ino={cgroup_ino})
-- @evidence  throttle_by_task --cgroup {cgroup_ino}: burst_bytes =
--   sum(dirtied_estimate_bytes)
-- @evidence  dirty_domains: dirty_max_bytes = max(dirty_max_bytes,
--   domain=memcg, cgroup_ino={cgroup_ino})
-- @advice    Give the cgroup more memory: its dirty limits are a share of
--   it[, with free run up to {share_ratio}][, and {proposed_bytes} have room
--   for this burst].
-- @set       /sys/fs/cgroup{cgroup_ino:path}/memory.max = {proposed_bytes:raw}
-- @costs     Memory that others then do not have.
-- @expect    throttle_summary.slept_total_ns lower
-- @needs     wb_loss_total, wb_disk_unknown, wb_task_dirtied, wb_domain_sum,
--   wb_dirty_setting, wb_watched, wb_rule, raw_wb_domain_dirty_state
-- @events    writeback:balance_dirty_pages|vmscan:mm_vmscan_memcg_reclaim_begin
-- @optional  writeback:balance_dirty_pages, writeback:wb_domain_dirty_state
-- @column    cost_task_ns INTEGER time that all tasks lost to it
-- @column    severity TEXT warning or note
-- @column    confidence TEXT inferred where nothing tells which disk the device
--   lies on, so that it may have been held back (io.max)
-- @column    tasks TEXT who lost it
-- @column    bdi TEXT the device
-- @column    cgroup_ino INTEGER the cgroup; NULL = not known
-- @column    which TEXT the cgroup, or a memory cgroup where it is not known
-- @column    least TEXT that burst_bytes is a lower bound; empty = it is none
-- @column    burst_bytes INTEGER what its tasks dirtied
-- @column    dirty_max_bytes INTEGER most that it had dirty
-- @column    share_ratio REAL where free run ends, as a share of its memory
--   that can be dirtied; NULL = nothing tells
-- @column    proposed_bytes INTEGER memory whose free run holds the burst; NULL
--   = that share, or the burst, is not known
-- @column    call_max_ns INTEGER longest that one call of balance_dirty_pages()
--   was held up, of those that were held up longest so; NULL = that is not felt
-- @column    call_least TEXT at least, where writes were not recorded; else
--   empty
-- @column    first_ts INTEGER ns, start of the first wait
-- @column    last_ts INTEGER ns, end of the last
-- @source    mm/page-writeback.c mdtc_calc_avail()
WITH
  burst AS (
    SELECT
      d.cgroup_ino,
      sum(d.estimate_bytes) AS bytes,
      max(d.basis = 'bound') AS is_bound
    FROM wb_task_dirtied AS d
    GROUP BY d.cgroup_ino
  ),
  -- Free run ends at the mean of both thresholds. Settings in bytes are made a
  -- share of what the machine can dirty, which nothing tells.
  told AS (
    SELECT
      e.cgroup_ino,
      avg(0.5 * (e.thresh + e.bg_thresh) / nullif(e.avail, 0)) AS free_ratio
    FROM raw_wb_domain_dirty_state AS e
    WHERE e.cgroup_ino > 1
    GROUP BY e.cgroup_ino
  ),
  widest AS (
    SELECT m.cgroup_ino, max(m.dirty_max_bytes) AS bytes
    FROM wb_domain_sum AS m
    WHERE m.domain = 'memcg'
    GROUP BY m.cgroup_ino
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.cost_task_ns >= v.long_call_ns OR t.longest_ns >= v.pause_max_ns
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  CASE WHEN n.bdi IS NULL THEN 'measured' ELSE 'inferred' END AS confidence,
  t.tasks,
  t.bdi,
  t.cgroup_ino,
  CASE WHEN t.cgroup_ino IS NULL THEN 'a memory cgroup' ELSE 'the cgroup' END
    AS which,
  CASE b.is_bound WHEN 1 THEN ' at least' ELSE '' END AS least,
  b.bytes AS burst_bytes,
  w.bytes AS dirty_max_bytes,
  coalesce(f.free_ratio, 0.005 * (s.dirty_ratio + s.dirty_background_ratio))
    AS share_ratio,
  CASE b.is_bound WHEN 0 THEN
    s.round_bytes
    * (
      1 + CAST(
        1.0 * b.bytes / s.round_bytes / coalesce(
          f.free_ratio, 0.005 * (s.dirty_ratio + s.dirty_background_ratio)
        ) AS INTEGER
      )
    )
  END AS proposed_bytes,
  CASE WHEN t.call_max_ns >= v.long_call_ns THEN t.call_max_ns END
    AS call_max_ns,
  CASE WHEN o.has_calls THEN '' ELSE 'at least ' END AS call_least,
  t.first_ts,
  t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_dirty_setting AS s
CROSS JOIN wb_watched AS o
LEFT JOIN wb_disk_unknown AS n ON n.bdi = t.bdi
LEFT JOIN burst AS b ON b.cgroup_ino = t.cgroup_ino
LEFT JOIN widest AS w ON w.cgroup_ino = t.cgroup_ino
LEFT JOIN told AS f ON f.cgroup_ino = t.cgroup_ino
WHERE t.finding = 'small_memcg_limit' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi, t.cgroup_ino;
