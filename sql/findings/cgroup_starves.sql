-- SPDX-License-Identifier: Apache-2.0
-- @finding   cgroup_starves
-- @title     A cgroup's dirty pages throttle another cgroup
-- @summary   Tasks were throttled while their own wb held less than its share
--   of free run, or while their disk was idle: pages of another cgroup, on the
--   same device, filled the machine's pool. severe where that was most of the
--   time that they were throttled.
-- @when      cgroup_starves
-- @severity  severe
-- @confidence measured
-- @sentence  {tasks} waited {cost_task_ns} writing to {bdi}, throttled by
--   another cgroup's dirty pages: {own_share_ratio} of the dirty pages
--   belonged to their own cgroup[ and {holder_share_ratio} to
--   {holder_cgroup_ino}][, and besides these only pages of {likely_cgroup_ino}
--   were written][; {bdi} was idle for {idle_ratio} of that time].
-- @evidence  lost_time: cost_task_ns = sum(total_ns, finding=cgroup_starves,
--   bdi={bdi}, cgroup_ino={cgroup_ino}); own_share_ratio =
--   mean(own_share_ratio, total_ns, finding=cgroup_starves, bdi={bdi},
--   cgroup_ino={cgroup_ino}); holder_share_ratio = mean(holder_share_ratio,
--   total_ns, finding=cgroup_starves, bdi={bdi}, cgroup_ino={cgroup_ino});
--   idle_ratio = 1 - mean(device_ratio, total_ns, finding=cgroup_starves,
--   bdi={bdi}, cgroup_ino={cgroup_ino})
-- @evidence  blame --cgroup {cgroup_ino}
-- @advice    [Raise or lift the io.max of {limited_cgroup_ino}, if it has one:
--   its pages waited while the disk was idle. Else: ][Give {high_cgroup_ino} a
--   memory.high that leaves {files_bytes} to its files, beside its other
--   memory: it then has dirty limits of its own, a share of that, and cannot
--   fill the machine's pool.][The root cgroup has no memory.high: move its
--   writers into a cgroup with one that leaves {moved_bytes} to its files,
--   beside its other memory: its dirty limits are a share of
--   that.][{unsized:raw} a limit of its memory (memory.high): its dirty limits
--   are then a share of that, which nothing tells while vm.dirty_bytes is set.]
-- @set       /sys/fs/cgroup{high_cgroup_ino:path}/memory.high =
--   {proposed_bytes:raw}
-- @now       /sys/fs/cgroup{high_cgroup_ino:path}/memory.high =
--   {now_high:raw}
-- @costs     The cgroup keeps less of its files in memory, and its writers are
--   throttled earlier. Below what else it has in memory, memory.high makes its
--   tasks reclaim and sleep.
-- @expect    throttled_ratio of {tasks} lower
-- @events    writeback:balance_dirty_pages
-- @optional  writeback:wb_domain_dirty_state
-- @column    severity TEXT severe or warning
-- @column    confidence TEXT inferred where no event tells for most of that
--   time what the other cgroup held
-- @column   bdi TEXT the device that they write to
-- @column   cgroup_ino INTEGER the cgroup that they write from
-- @column    own_share_ratio REAL what their own wb held meanwhile
-- @column    holder_bdi TEXT the same device
-- @column    holder_cgroup_ino INTEGER the cgroup whose pages filled the pool;
--   NULL = not known
-- @column    holder_share_ratio REAL what that wb held; NULL = no event tells
--   it for most of that time
-- @column    likely_cgroup_ino INTEGER likewise, the only other cgroup whose
--   pages were written; else NULL
-- @column    idle_ratio REAL share of that time in which the disk had no
--   request; NULL = the smaller part, or not recorded
-- @column    limited_cgroup_ino INTEGER the other cgroup likewise; NULL for the
--   root, too, which has no io.max
-- @column    high_cgroup_ino INTEGER the other cgroup; NULL = the root, which
--   can have no limit
-- @column    files_bytes INTEGER page cache whose share of dirty pages is half
--   of the machine's limit; NULL for the root, and where nothing tells that
--   share
-- @column    moved_bytes INTEGER the same for the root; else NULL
-- @column    proposed_bytes INTEGER memory.high: files_bytes and what else the
--   cgroup had in memory at most; NULL = nothing tells that, or its memory.high
--   is no higher
-- @column    now_high TEXT memory.high now, where it is to be set
-- @column    unsized TEXT who is to have a limit whose size nothing tells; NULL
--   = it is told
-- @source    docs/findings.md
WITH
  starved AS (
    SELECT l.*
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.finding = 'cgroup_starves'
      AND in_time!(l.ts, b)
  ),
  share AS (
    SELECT
      s.bdi, s.cgroup_ino,
      sum(s.dur * s.own_share_ratio) / sum(s.dur) AS own_share_ratio,
      mean_over!(s.holder_share_ratio, s.dur) AS holder_share_ratio,
      total(CASE WHEN s.holder_bdi IS NOT NULL THEN s.dur END)
        >= v.most_ratio * sum(s.dur) AS is_known,
      max(s.rival_cgroup_ino) AS rival_cgroup_ino
    FROM starved AS s
    CROSS JOIN wb_rule AS v
    GROUP BY s.bdi, s.cgroup_ino
  ),
  holder AS (
    SELECT
      s.bdi, s.cgroup_ino, s.holder_bdi, s.holder_cgroup_ino,
      row_number() OVER (
        PARTITION BY s.bdi, s.cgroup_ino
        ORDER BY
          total(s.dur * s.holder_share_ratio) DESC,
          s.holder_bdi, s.holder_cgroup_ino
      ) AS place
    FROM starved AS s
    WHERE s.holder_bdi IS NOT NULL
    GROUP BY s.bdi, s.cgroup_ino, s.holder_bdi, s.holder_cgroup_ino
  ),
  held AS (
    SELECT l.bdi, l.cgroup_ino, sum(l.dur) AS dur
    FROM wb_loss AS l
    CROSS JOIN wb_bounds AS b
    WHERE l.kind = 'throttle'
      AND in_time!(l.ts, b)
      AND l.task_id IN (SELECT s.task_id FROM starved AS s)
    GROUP BY l.bdi, l.cgroup_ino
  ),
  -- What share of its memory a cgroup may have dirty: as told, or as set. A
  -- fifth where nothing says otherwise; a limit in bytes is made a share of
  -- what the machine can dirty.
  limits AS (
    SELECT
      coalesce(
        (
          SELECT avg(1.0 * e.thresh / nullif(e.avail, 0))
          FROM raw_wb_domain_dirty_state AS e
        ),
        0.01 * u.dirty_ratio,
        CASE WHEN u.dirty_bytes IS NULL THEN 0.2 END
      ) AS share_ratio
    FROM wb_units AS u
  ),
  sized AS (
    SELECT CAST(m.thresh_bytes / 2 / l.share_ratio AS INTEGER) AS memory_bytes
    FROM limits AS l
    CROSS JOIN dirty_limits AS m
  ),
  -- Its dirty limits are a share of its page cache and what it may still take.
  memory AS (
    SELECT
      c.cgroup_ino,
      max(0, max(c.memory_bytes - c.file_bytes)) AS other_bytes,
      min(c.memory_high_bytes) AS high_bytes
    FROM wb_usage AS c
    WHERE c.source = 'cgroup' AND c.memory_bytes IS NOT NULL
    GROUP BY c.cgroup_ino
  ),
  other AS (
    SELECT
      s.bdi, s.cgroup_ino, s.is_known,
      CASE WHEN s.is_known THEN h.holder_cgroup_ino ELSE s.rival_cgroup_ino END
        AS other_cgroup_ino
    FROM share AS s
    LEFT JOIN holder AS h
      ON h.bdi = s.bdi AND h.cgroup_ino IS s.cgroup_ino AND h.place = 1
  )
SELECT
  t.cost_task_ns,
  CASE WHEN t.cost_task_ns >= v.most_ratio * w.dur THEN 'severe'
    ELSE 'warning'
  END AS severity,
  CASE WHEN o.is_known THEN 'measured' ELSE 'inferred' END AS confidence,
  t.tasks, t.bdi, t.cgroup_ino, s.own_share_ratio,
  t.bdi AS holder_bdi,
  o.other_cgroup_ino AS holder_cgroup_ino,
  CASE WHEN o.is_known THEN s.holder_share_ratio END AS holder_share_ratio,
  CASE o.is_known WHEN 0 THEN o.other_cgroup_ino END AS likely_cgroup_ino,
  CASE WHEN t.device_ratio < v.most_ratio THEN 1 - t.device_ratio END
    AS idle_ratio,
  CASE WHEN t.device_ratio < v.most_ratio THEN nullif(o.other_cgroup_ino, 1) END
    AS limited_cgroup_ino,
  nullif(o.other_cgroup_ino, 1) AS high_cgroup_ino,
  CASE WHEN o.other_cgroup_ino <> 1 THEN z.memory_bytes END AS files_bytes,
  CASE WHEN o.other_cgroup_ino = 1 THEN z.memory_bytes END AS moved_bytes,
  CASE
    WHEN o.other_cgroup_ino <> 1
      AND z.memory_bytes + y.other_bytes
        < coalesce(y.high_bytes, z.memory_bytes + y.other_bytes + 1)
      THEN z.memory_bytes + y.other_bytes
  END AS proposed_bytes,
  CASE
    WHEN o.other_cgroup_ino <> 1
      AND z.memory_bytes + y.other_bytes
        < coalesce(y.high_bytes, z.memory_bytes + y.other_bytes + 1)
      THEN coalesce(y.high_bytes, 'max')
  END AS now_high,
  CASE
    WHEN z.memory_bytes IS NOT NULL OR o.other_cgroup_ino IS NULL THEN NULL
    WHEN o.other_cgroup_ino = 1
      THEN 'Move the writers of the root cgroup into one, and give it'
    ELSE 'Give the cgroup whose pages they are'
  END AS unsized,
  t.first_ts, t.last_ts
FROM wb_loss_total AS t
CROSS JOIN wb_rule AS v
CROSS JOIN sized AS z
JOIN share AS s ON s.bdi = t.bdi AND s.cgroup_ino IS t.cgroup_ino
JOIN held AS w ON w.bdi = t.bdi AND w.cgroup_ino IS t.cgroup_ino
JOIN other AS o ON o.bdi = t.bdi AND o.cgroup_ino IS t.cgroup_ino
LEFT JOIN memory AS y ON y.cgroup_ino = o.other_cgroup_ino
WHERE t.finding = 'cgroup_starves' AND t.cost_task_ns >= v.loss_least_ns
ORDER BY t.cost_task_ns DESC, t.bdi, t.cgroup_ino;
