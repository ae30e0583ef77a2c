-- SPDX-License-Identifier: Apache-2.0
-- @finding   small_memcg_limit
-- @title     A memory cgroup is too small for the burst
-- @summary   Tasks were throttled by the dirty limits of their own memory
--   cgroup, or waited while it reclaimed its memory; the machine had room. A
--   warning where they lost half a second or more, or were held for as long as
--   a pause can be (200 ms); else a note.
-- @when      small_memcg_limit
-- @severity  warning
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} for the limits of {which}[
--   {cgroup_ino}][, of which there was only {likely_cgroup_ino}][: its tasks
--   dirtied{least:raw} {burst_bytes}][; it had {dirty_max_bytes} dirty at
--   most][; one write was blocked for {call_part_ns} of that].
-- @evidence  lost_time: cost_task_ns = sum(total_ns,
--   finding=small_memcg_limit, cgroup_ino={cgroup_ino}); call_part_ns =
--   max(call_part_max_ns, finding=small_memcg_limit, cgroup_ino={cgroup_ino})
-- @evidence  throttle_by_task --cgroup {cgroup_ino}: burst_bytes =
--   sum(dirtied_estimate_bytes)
-- @evidence  dirty_domains: dirty_max_bytes = max(dirty_max_bytes,
--   domain=memcg, cgroup_ino={cgroup_ino})
-- @advice    [Give the cgroup more memory ({roomy_file:raw}): its dirty limits
--   are a share of what its files have and could have][, with free run up to
--   {share_ratio}][, and {files_bytes} for its files have room for this
--   burst][, and {whole_bytes} in all have room for this burst][Give the cgroup
--   more memory ({full_file:raw}): its tasks wait while they reclaim what is
--   over its limit][No limit has room for this burst: that takes
--   {missing_bytes}, and the machine has {memory_bytes}. Let its writers write
--   less at once, start writing as they go (sync_file_range), or bypass the
--   page cache (O_DIRECT)].
-- @set       /sys/fs/cgroup{cgroup_ino:path}/memory.high = {high_bytes:raw}
-- @set       /sys/fs/cgroup{cgroup_ino:path}/memory.max = {max_bytes:raw}
-- @now       [/sys/fs/cgroup{cgroup_ino:path}/memory.high =
--   {now_high_bytes:raw}]
-- @now       [/sys/fs/cgroup{cgroup_ino:path}/memory.max = {now_max_bytes:raw}]
-- @costs     [{costs:raw}]
-- @expect    [{expected:raw}]
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
-- @column    likely_cgroup_ino INTEGER where it is not known, the only one that
--   the machine had besides the root; NULL = it had several, or is known
-- @column    least TEXT that burst_bytes is a lower bound; empty = it is none
-- @column    burst_bytes INTEGER what its tasks dirtied
-- @column    dirty_max_bytes INTEGER most that it had dirty
-- @column    share_ratio REAL where free run ends, as a share of its memory
--   that can be dirtied; NULL = nothing tells
-- @column    proposed_bytes INTEGER memory whose free run holds the burst; NULL
--   = that share, or the burst, is not known, the cgroup has as much already,
--   or the machine has less
-- @column    whole_bytes INTEGER the same, where it is beside what the cgroup
--   has that is no page cache
-- @column    files_bytes INTEGER the same, where nothing tells that
-- @column    roomy_file TEXT the file of its limit, where tasks were throttled
--   by its dirty limits and the machine has room for the burst; else NULL
-- @column    full_file TEXT the same, where they only reclaimed; else NULL
-- @column    missing_bytes INTEGER what would have room for the burst, where
--   the machine has less; else NULL
-- @column    memory_bytes INTEGER the machine's memory
-- @column    high_bytes INTEGER memory.high to set; NULL = it is not set, or
--   not known to be, or high enough
-- @column    max_bytes INTEGER memory.max likewise
-- @column    now_high_bytes INTEGER what memory.high is, where it is to be set
-- @column    now_max_bytes INTEGER memory.max likewise
-- @column    costs TEXT what more memory costs
-- @column    expected TEXT what should change
-- @column    call_part_ns INTEGER longest that one call of
--   balance_dirty_pages() was held up for this reason; NULL = that is not felt
-- @source    mm/page-writeback.c mdtc_calc_avail()
WITH
  widest AS (
    SELECT m.cgroup_ino, max(m.dirty_max_bytes) AS bytes
    FROM dirty_domains AS m
    WHERE m.domain = 'memcg'
    GROUP BY m.cgroup_ino
  ),
  -- Where the cgroup is known no other can be meant.
  only_one AS (
    SELECT min(c.cgroup_ino) AS cgroup_ino
    FROM raw_cgroup AS c
    WHERE c.cgroup_ino > 1
    HAVING count(DISTINCT c.cgroup_ino) = 1
  ),
  judged AS (
    SELECT
      t.cost_task_ns, t.longest_ns, t.call_part_ns, t.tasks, t.first_ts,
      t.last_ts, t.wrote_disks, z.*,
      z.roomy_bytes > z.memory_bytes AS is_too_much,
      -- It has as much, and yet its tasks waited: nothing tells how much more.
      CASE
        WHEN z.roomy_bytes > z.memory_bytes
          OR z.roomy_bytes <= min(
            coalesce(z.high_bytes, z.max_bytes),
            coalesce(z.max_bytes, z.high_bytes)
          )
          THEN NULL
        ELSE z.roomy_bytes
      END AS proposed_bytes
    FROM wb_loss_total AS t
    CROSS JOIN wb_rule AS v
    JOIN _memcg_sized AS z ON z.bdi IS t.bdi AND z.cgroup_ino IS t.cgroup_ino
    WHERE t.finding = 'small_memcg_limit'
      AND t.cost_task_ns >= v.loss_least_ns
  )
SELECT
  t.cost_task_ns,
  CASE
    WHEN t.cost_task_ns >= v.long_call_ns OR t.longest_ns >= v.pause_max_ns
      THEN 'warning'
    ELSE 'note'
  END AS severity,
  CASE WHEN t.wrote_disks IS NULL THEN 'measured' ELSE 'inferred' END
    AS confidence,
  t.tasks, t.bdi, t.cgroup_ino,
  CASE WHEN t.cgroup_ino IS NULL THEN 'a memory cgroup' ELSE 'the cgroup' END
    AS which,
  CASE WHEN t.cgroup_ino IS NULL THEN o.cgroup_ino END AS likely_cgroup_ino,
  t.least,
  -- A bound below what is known to be dirty says nothing.
  CASE WHEN t.least = '' OR t.burst_bytes >= w.bytes THEN t.burst_bytes END
    AS burst_bytes,
  w.bytes AS dirty_max_bytes,
  CASE WHEN t.is_throttled = 1 AND coalesce(t.is_too_much, 0) = 0
    THEN t.share_ratio
  END AS share_ratio,
  t.proposed_bytes,
  CASE WHEN t.is_whole THEN t.proposed_bytes END AS whole_bytes,
  CASE t.is_whole WHEN 0 THEN t.proposed_bytes END AS files_bytes,
  CASE WHEN t.is_throttled = 1 AND coalesce(t.is_too_much, 0) = 0
    THEN t.limit_file
  END AS roomy_file,
  CASE WHEN coalesce(t.is_throttled, 0) = 0 THEN t.limit_file END AS full_file,
  CASE t.is_too_much WHEN 1 THEN t.roomy_bytes END AS missing_bytes,
  t.memory_bytes,
  CASE WHEN t.high_bytes < t.proposed_bytes THEN t.proposed_bytes END
    AS high_bytes,
  CASE WHEN t.max_bytes < t.proposed_bytes THEN t.proposed_bytes END
    AS max_bytes,
  CASE WHEN t.high_bytes < t.proposed_bytes THEN t.high_bytes END
    AS now_high_bytes,
  CASE WHEN t.max_bytes < t.proposed_bytes THEN t.max_bytes END
    AS now_max_bytes,
  CASE WHEN coalesce(t.is_too_much, 0) = 0
    THEN 'Memory that others then do not have.'
  END AS costs,
  CASE
    WHEN t.is_too_much = 1 THEN NULL
    WHEN t.is_throttled = 1 THEN 'throttle_summary.slept_total_ns lower'
    ELSE 'stalls_by_task.total_ns lower'
  END AS expected,
  CASE WHEN t.call_part_ns >= v.long_call_ns THEN t.call_part_ns END
    AS call_part_ns,
  t.first_ts, t.last_ts
FROM judged AS t
CROSS JOIN wb_rule AS v
LEFT JOIN only_one AS o ON 1 = 1
LEFT JOIN widest AS w ON w.cgroup_ino = t.cgroup_ino
ORDER BY t.cost_task_ns DESC, t.bdi, t.cgroup_ino;

-- @view     _memcg_sized
-- @summary  Limits of memory cgroups, and what would be roomy enough.
-- @grain    bdi, cgroup; order bdi, cgroup_ino
-- @column   is_throttled INTEGER 1: throttling took enough time for a finding
-- @column   share_ratio REAL share of its memory at which free run ends
-- @column   roomy_bytes INTEGER limit in which the burst is free run; NULL =
--   not told
-- @column   is_whole INTEGER 1: what else its memory holds was sampled
-- @column   memory_bytes INTEGER of the machine
-- @column   high_bytes INTEGER memory.high; NULL = not set, or not sampled
-- @column   max_bytes INTEGER memory.max; NULL = not set, or not sampled
-- @column   limit_file TEXT the file that limits it
-- @column   least TEXT at least, where the burst is a lower bound
-- @column   burst_bytes INTEGER that its tasks dirtied
CREATE VIEW _memcg_sized AS
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
  lost AS (
    SELECT
      l.bdi, l.cgroup_ino,
      sum(CASE l.kind WHEN 'throttle' THEN l.dur END) AS throttled_ns
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'small_memcg_limit' AND in_time!(l.ts, b)
    GROUP BY l.bdi, l.cgroup_ino
  ),
  -- A file that says max has no number. memory.current has one always.
  limited AS (
    SELECT
      c.cgroup_ino,
      min(c.memory_high_bytes) AS high_bytes,
      min(c.memory_max_bytes) AS max_bytes,
      max(c.memory_bytes - c.file_bytes) AS other_bytes
    FROM wb_usage AS c
    WHERE c.source = 'cgroup' AND c.memory_bytes IS NOT NULL
    GROUP BY c.cgroup_ino
  )
SELECT
  t.bdi, t.cgroup_ino,
  t.throttled_ns >= v.loss_least_ns AS is_throttled,
  coalesce(f.free_ratio, 0.005 * (u.dirty_ratio + u.dirty_background_ratio))
    AS share_ratio,
  CASE WHEN b.is_bound = 0 AND t.throttled_ns >= v.loss_least_ns THEN
    u.round_bytes
    * (
      1 + CAST(
        (
          b.bytes / coalesce(
            f.free_ratio, 0.005 * (u.dirty_ratio + u.dirty_background_ratio)
          ) + coalesce(max(k.other_bytes, 0), 0)
        ) / u.round_bytes AS INTEGER
      )
    )
  END AS roomy_bytes,
  k.other_bytes IS NOT NULL AS is_whole,
  u.memory_bytes, k.high_bytes, k.max_bytes,
  CASE
    WHEN k.cgroup_ino IS NULL
      THEN 'memory.high or memory.max, if one is set: that was not recorded'
    WHEN k.high_bytes IS NULL AND k.max_bytes IS NULL
      THEN 'the limit is that of a folder above it'
    WHEN k.max_bytes IS NULL OR k.high_bytes < k.max_bytes
      THEN 'memory.high'
    WHEN k.high_bytes IS NULL OR k.max_bytes < k.high_bytes
      THEN 'memory.max'
    ELSE 'memory.high and memory.max'
  END AS limit_file,
  CASE b.is_bound WHEN 1 THEN ' at least' ELSE '' END AS least,
  b.bytes AS burst_bytes
FROM lost AS t
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
LEFT JOIN burst AS b ON b.cgroup_ino = t.cgroup_ino
LEFT JOIN told AS f ON f.cgroup_ino = t.cgroup_ino
LEFT JOIN limited AS k ON k.cgroup_ino = t.cgroup_ino;
