-- SPDX-License-Identifier: Apache-2.0
-- What waits in memory for disks: dirty pages of files, and swap.

-- @view     wb_swap
-- @shared
-- @summary  Where swap lies, whether pages went there, and whether files are
--   written to its disks, too.
-- @grain    one row
-- @optional vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
-- @column   is_swapping INTEGER 1: pages went to a swap device
-- @column   is_shared INTEGER 1: and it is a disk that dirty pages are written
--   to as well, or the only disk
-- @column   is_told INTEGER 1: the recorder noted where swap lies
-- @column   area_bdi TEXT disk of a swap area; NULL = not known
-- @column   bdis TEXT all disks that swap lies on, and what lies on them, with
--   a space before and behind each; empty = none is known
-- @column   only_count INTEGER disks that nothing but swap is written to
-- @column   only_bdi TEXT that disk, where there is one
-- @materialize
CREATE VIEW wb_swap AS
WITH
  swapped AS (
    SELECT
      coalesce(
        d.device_count,
        (
          SELECT count(*)
          FROM raw_mm_vmscan_write_folio AS w
          WHERE w.reclaim_flags & 3 = 1
        )
      ) >= v.few_pages_count AS is_swapping
    FROM reclaim_run AS d
    CROSS JOIN wb_rule AS v
  ),
  disk AS (
    SELECT count(DISTINCT b.device) AS disks_count
    FROM wb_busy AS b
    WHERE b.resource = 'device'
      AND b.device NOT IN (SELECT k.bdi FROM wb_stack AS k)
  )
SELECT
  s.is_swapping,
  CASE
    WHEN s.is_swapping = 1
      AND (
        EXISTS (
          SELECT 1
          FROM _swap_disk AS w
          WHERE w.bdi IN (
            SELECT t.bdi FROM raw_balance_dirty_pages AS t WHERE is_step!(t)
          )
        )
        OR (k.disks_count = 1 AND NOT EXISTS (SELECT 1 FROM _swap_area))
      )
      THEN 1
    ELSE 0
  END AS is_shared,
  EXISTS (SELECT 1 FROM _swap_area) AS is_told,
  (SELECT min(w.bdi) FROM _swap_area AS w) AS area_bdi,
  coalesce(
    (SELECT ' ' || group_concat(w.bdi, ' ') || ' ' FROM _swap_disk AS w), ''
  ) AS bdis,
  o.only_count, o.only_bdi
FROM swapped AS s
CROSS JOIN disk AS k
CROSS JOIN (
  SELECT
    count(*) AS only_count,
    CASE WHEN count(*) = 1 THEN min(w.bdi) END AS only_bdi
  FROM _swap_only AS w
) AS o;

-- @view     wb_disk_backlog
-- @shared
-- @summary  What was dirty for each disk at most, how long the disk takes to
--   write it, and a lower limit with which that were two seconds.
-- @grain    disk that wrote, and neither swap alone nor only what lies on it,
--   nor a volume that does nothing beside others; order bdi
-- @key      bdi
-- @optional writeback:global_dirty_state, writeback:balance_dirty_pages,
--   writeback:writeback_start, writeback:writeback_written
-- @column   bdi TEXT backing device
-- @column   disk_bytes_per_s REAL of wb_disk_rate
-- @column   reached_ratio REAL of wb_disk_rate
-- @column   dirty_max_bytes INTEGER most that the machine had dirty, where it
--   wrote nearly all that was written; else NULL
-- @column   held_bytes INTEGER most that the bdi had dirty and under writeback,
--   by its events and samples; NULL = nothing tells, or as above
-- @column   wrote_bytes INTEGER all that it wrote, where that is all that is
--   known; else NULL
-- @column   any_bytes INTEGER most that the machine had dirty, where nothing
--   tells what it had and it wrote no less in all; else NULL
-- @column   place INTEGER 1 = takes longest; NULL = it was busy for little
-- @column   backlog_ns INTEGER how long it takes to write this, but no more
--   than the machine had dirty
-- @column   other_bdi TEXT bdi where other disks wrote, too, which a limit for
--   this one would hold up: then none is proposed
-- @column   proposed_bytes INTEGER limit: what it writes in two seconds, or
--   least_bytes of wb_units; NULL = not lower, no less than what was
--   dirty anyway, or nothing tells
-- @column   worth_bytes INTEGER the same; NULL likewise, and where that is
--   least_bytes
-- @column   floor_bytes INTEGER the same, where that is least_bytes
-- @column   background_bytes INTEGER background limit beside it: what it writes
--   in half a second, or a quarter of least_bytes; NULL likewise
-- @column   limit_bytes INTEGER the limit in force, where that is no higher
-- @column   little_bytes INTEGER most that the machine had dirty, where such a
--   limit would be higher than this, and change nothing
-- @column   untold_bytes INTEGER limit where the one in force is not known
-- @column   request_bytes REAL mean size of its writes, where that forbids one
-- @materialize
-- @cost     93
CREATE VIEW wb_disk_backlog AS
WITH
  -- Once: each row takes a look at all events.
  held AS MATERIALIZED (
    SELECT h.*
    FROM _disk_held AS h
  ),
  sized AS (
    SELECT
      h.*,
      CASE WHEN h.is_main THEN h.dirty_max_bytes
        ELSE min(h.dirty_max_bytes, coalesce(h.held_bytes, h.written_bytes))
      END AS backlog_bytes
    FROM held AS h
  ),
  -- Whoever wants less queued before a sync or a commit is helped by no limit
  -- that is not lower than the one in force.
  limits AS (
    SELECT
      d.bdi,
      d.is_main OR d.dirty_max_bytes IS NULL AS is_only,
      max(2 * d.disk_bytes_per_s, coalesce(u.least_bytes, 0)) AS wanted_bytes,
      2 * d.disk_bytes_per_s < coalesce(u.least_bytes, 0) AS is_floor,
      u.round_bytes * (
        1 + CAST(
          max(2 * d.disk_bytes_per_s, coalesce(u.least_bytes, 0))
            / u.round_bytes AS INTEGER
        )
      ) AS bytes,
      u.round_bytes * (
        1 + CAST(
          max(d.disk_bytes_per_s / 2, coalesce(u.least_bytes, 0) / 4)
            / u.round_bytes AS INTEGER
        )
      ) AS background_bytes,
      d.backlog_bytes,
      -- The files beside the trace may be of another time: the lower one.
      coalesce(
        min(m.thresh_bytes, u.dirty_bytes), m.thresh_bytes, u.dirty_bytes
      ) AS limit_bytes,
      -- Limited by requests: the more is dirty the more of them merge.
      CASE WHEN d.request_bytes < v.small_request_bytes THEN d.request_bytes END
        AS request_bytes
    FROM sized AS d
    CROSS JOIN wb_rule AS v
    CROSS JOIN dirty_limits AS m
    CROSS JOIN wb_units AS u
  ),
  useful AS (
    SELECT
      l.*,
      l.is_only AND l.bytes < l.limit_bytes
        AND l.bytes < coalesce(l.backlog_bytes, l.limit_bytes) AS is_lower,
      -- A limit acts on what is dirty.
      l.bytes >= l.backlog_bytes AS is_little
    FROM limits AS l
  )
SELECT
  s.bdi, s.disk_bytes_per_s, s.reached_ratio,
  CASE WHEN s.is_main THEN s.dirty_max_bytes END AS dirty_max_bytes,
  s.held_bytes,
  CASE
    WHEN s.is_main = 0 AND s.held_bytes IS NULL
      AND s.written_bytes < coalesce(s.dirty_max_bytes, s.written_bytes + 1)
      THEN s.written_bytes
  END AS wrote_bytes,
  CASE
    WHEN s.is_main = 0 AND s.held_bytes IS NULL
      AND s.written_bytes >= s.dirty_max_bytes
      THEN s.dirty_max_bytes
  END AS any_bytes,
  CASE WHEN s.busy_ns >= v.long_call_ns THEN
    row_number() OVER (
      PARTITION BY s.busy_ns >= v.long_call_ns
      ORDER BY
        s.backlog_bytes / s.disk_bytes_per_s DESC,
        s.is_below, s.bdi
    )
  END AS place,
  CAST(s.backlog_bytes * u.second_ns / s.disk_bytes_per_s AS INTEGER)
    AS backlog_ns,
  CASE WHEN l.is_only = 0 THEN s.bdi END AS other_bdi,
  CASE WHEN l.is_better THEN l.bytes END AS proposed_bytes,
  CASE WHEN l.is_better AND l.is_floor = 0 THEN l.bytes END AS worth_bytes,
  CASE WHEN l.is_better AND l.is_floor = 1 THEN l.bytes END AS floor_bytes,
  CASE WHEN l.is_better THEN min(l.background_bytes, l.bytes / 2) END
    AS background_bytes,
  CASE WHEN l.is_only AND l.wanted_bytes >= l.limit_bytes THEN l.limit_bytes END
    AS limit_bytes,
  CASE WHEN l.is_only AND l.is_little AND l.wanted_bytes < l.limit_bytes
    THEN s.dirty_max_bytes
  END AS little_bytes,
  CASE WHEN l.is_only AND l.limit_bytes IS NULL AND l.request_bytes IS NULL
    THEN l.bytes
  END AS untold_bytes,
  CASE WHEN l.is_lower OR (l.is_only AND l.limit_bytes IS NULL)
    THEN l.request_bytes
  END AS request_bytes
FROM sized AS s
JOIN (
  SELECT o.*, o.is_lower AND o.request_bytes IS NULL AS is_better
  FROM useful AS o
) AS l ON l.bdi = s.bdi
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u;

-- @view     _swap_area
-- @summary  Where swap lies: on its partition's disk, or on the disk of the
--   file system with the swap file.
-- @grain    swap area; order path
-- @column   bdi TEXT major:minor; NULL = not known, but none that is mounted
-- @source   /proc/swaps
-- @materialize
CREATE VIEW _swap_area AS
WITH
  disk AS (
    SELECT
      s.object AS name,
      max(CASE WHEN s.name = 'dev_major' THEN s.value END) || ':'
        || max(CASE WHEN s.name = 'dev_minor' THEN s.value END) AS bdi
    FROM raw_sample AS s
    WHERE s.source = 'block' AND s.name IN ('dev_major', 'dev_minor')
    GROUP BY s.object
  ),
  named AS (
    SELECT d.name, d.bdi, 1 AS rank
    FROM disk AS d
    UNION ALL
    SELECT n.device, n.bdi, 2
    FROM wb_device AS n
  ),
  -- What is behind a device's name.
  cut AS (
    SELECT
      a.path, n.name, n.bdi, n.rank,
      substr(a.path, length(n.name) + 6) AS rest
    FROM raw_swap AS a
    JOIN named AS n
      ON n.name <> ''
      AND substr(a.path, 1, length(n.name) + 5) = '/dev/' || n.name
    WHERE a.path GLOB '/dev/*'
  ),
  -- Nothing, or the number of a partition; behind a digit there is a p before
  -- it: dm-12 is no part of dm-1.
  found AS (
    SELECT
      c.path, c.bdi,
      row_number() OVER (
        PARTITION BY c.path ORDER BY length(c.name) DESC, c.rank, c.bdi
      ) AS place
    FROM cut AS c
    WHERE CASE
        WHEN c.rest = '' THEN 1
        WHEN c.name GLOB '*[0-9]'
          THEN c.rest GLOB 'p[0-9]*' AND substr(c.rest, 2) NOT GLOB '*[^0-9]*'
        ELSE c.rest NOT GLOB '*[^0-9]*'
      END
  ),
  -- The mount point that the file's path has most of.
  held AS (
    SELECT
      a.path, d.bdi,
      row_number() OVER (
        PARTITION BY a.path ORDER BY length(d.mount) DESC, d.bdi
      ) AS place
    FROM raw_swap AS a
    JOIN wb_device AS d
      ON d.mount = '/'
      OR substr(a.path, 1, length(d.mount) + 1) = d.mount || '/'
    WHERE a.path NOT GLOB '/dev/*'
  )
SELECT f.bdi, a.path
FROM raw_swap AS a
LEFT JOIN found AS f ON f.path = a.path AND f.place = 1
WHERE a.path GLOB '/dev/*'
UNION ALL
SELECT h.bdi, h.path FROM held AS h WHERE h.place = 1;

-- @view     _swap_disk
-- @summary  The disks that swap lies on, and all that lies on them (wb_stack).
-- @grain    bdi; order bdi
-- @column   bdi TEXT of a disk, or of what lies on it
-- @materialize
CREATE VIEW _swap_disk AS
WITH
  disk AS (
    SELECT w.bdi FROM _swap_area AS w WHERE w.bdi IS NOT NULL
    UNION
    SELECT k.disk
    FROM _swap_area AS w
    JOIN wb_stack AS k ON k.bdi = w.bdi
  )
SELECT d.bdi
FROM disk AS d
UNION
SELECT k.bdi
FROM wb_stack AS k
WHERE k.disk IN (SELECT d.bdi FROM disk AS d);

-- @view     _swap_only
-- @summary  Disks that nothing but swap is written to: no file's pages are
--   dirty for them. Where nothing tells where swap lies, those that wrote no
--   more than went there.
-- @grain    bdi; order bdi
-- @column   bdi TEXT major:minor
-- @materialize
CREATE VIEW _swap_only AS
WITH
  written AS (
    SELECT device!(c) AS bdi, sum(c.nr_sector) * u.sector_bytes AS bytes
    FROM reclaim_run AS r
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_units AS u
    CROSS JOIN raw_block_rq_complete AS c
    WHERE r.device_count >= v.few_pages_count AND c.op = 'write'
    GROUP BY c.dev_major, c.dev_minor
  )
SELECT w.bdi
FROM written AS w
CROSS JOIN reclaim_run AS r
CROSS JOIN wb_rule AS v
CROSS JOIN wb_units AS u
WHERE CASE
    WHEN EXISTS (SELECT 1 FROM _swap_area)
      THEN w.bdi IN (SELECT k.bdi FROM _swap_disk AS k)
    -- Without the flushers' events nobody knows.
    WHEN EXISTS (SELECT 1 FROM wb_work AS f WHERE f.ended_count > 0)
      THEN w.bytes >= v.few_pages_count * u.page_bytes
        AND w.bytes <= r.device_count * u.page_bytes
    ELSE 0
  END
  AND w.bdi NOT IN (SELECT f.bdi FROM _filed AS f)
  AND w.bdi NOT IN (
    SELECT k.disk
    FROM wb_stack AS k
    WHERE k.bdi IN (SELECT f.bdi FROM _filed AS f)
  );

-- @view     _filed
-- @summary  Those that the pages of files are dirty for.
-- @grain    bdi; order bdi
-- @materialize
CREATE VIEW _filed AS
SELECT f.bdi
FROM wb_work AS f
CROSS JOIN wb_rule AS v
GROUP BY f.bdi, f.cgroup_ino, v.few_pages_count
HAVING sum(f.pages_count) >= v.few_pages_count
UNION
SELECT t.bdi FROM raw_balance_dirty_pages AS t WHERE is_step!(t);

-- @view     _disk_held
-- @summary  The most dirty data that each disk and volume had.
-- @grain    bdi; order bdi
-- @column   written_bytes INTEGER as in wb_disk_rate
-- @column   is_below INTEGER 1: a volume lies on it
-- @column   is_main INTEGER 1: nearly all of what was written went there
-- @column   held_bytes INTEGER the most that was dirty of it; NULL = it is main
CREATE VIEW _disk_held AS
WITH
  -- The file behind a loop device is on the only disk that there is.
  only_disk AS (
    SELECT min(d.bdi) AS disk
    FROM wb_disk_rate AS d
    WHERE d.bdi NOT GLOB '7:*'
      AND d.bdi NOT IN (SELECT k.bdi FROM wb_stack AS k)
    HAVING count(*) = 1
  ),
  looped AS (
    SELECT o.disk, max(d.bdi) AS bdi, sum(d.written_bytes) AS written_bytes
    FROM only_disk AS o
    CROSS JOIN wb_disk_rate AS d
    WHERE d.bdi GLOB '7:*'
    GROUP BY o.disk
  ),
  -- What its disk writes is of another volume there.
  idle_volume AS (
    SELECT k.bdi
    FROM wb_stack AS k
    JOIN wb_stack AS s ON s.disk = k.disk
    WHERE s.bdi IN (SELECT f.bdi FROM _filed AS f)
      AND k.bdi NOT IN (SELECT f.bdi FROM _filed AS f)
  ),
  below AS (
    SELECT s.disk FROM raw_stack AS s WHERE s.bdi <> s.disk
  ),
  disk AS (
    SELECT
      d.bdi, d.disk_bytes_per_s, d.reached_ratio, d.request_bytes, d.busy_ns,
      m.dirty_max_bytes,
      CAST(d.written_bytes AS INTEGER) AS written_bytes,
      -- What lies on a disk is what is written to, and counts once.
      d.bdi IN (SELECT r.disk FROM below AS r) AS is_below,
      d.written_bytes >= v.nearly_all_ratio * total(
        CASE WHEN d.bdi NOT IN (SELECT r.disk FROM below AS r)
          THEN max(d.written_bytes - coalesce(l.written_bytes, 0), 0)
        END
      ) OVER () AS is_main
    FROM wb_disk_rate AS d
    CROSS JOIN dirty_limits AS m
    CROSS JOIN wb_rule AS v
    LEFT JOIN looped AS l ON l.disk = d.bdi
  )
SELECT
  d.bdi, d.disk_bytes_per_s, d.reached_ratio, d.request_bytes, d.busy_ns,
  d.dirty_max_bytes, d.written_bytes, d.is_below, d.is_main,
  -- Only where several disks wrote: it takes a look at all events.
  CASE WHEN d.is_main = 0 THEN
    nullif(
      max(
        coalesce(
          (
            SELECT max(r.wb_dirty) * u.page_bytes
            FROM raw_balance_dirty_pages AS r
            CROSS JOIN wb_params AS p
            WHERE r.bdi = d.bdi AND in_range!(r.ts, p)
          ),
          0
        ),
        coalesce(
          (
            SELECT max(s.dirty_bytes + s.writeback_bytes)
            FROM wb_usage AS s
            CROSS JOIN wb_params AS p
            WHERE s.source = 'bdi'
              AND s.device = d.bdi
              AND s.cgroup_ino IS NULL
              AND in_range!(s.ts, p)
          ),
          0
        )
      ),
      0
    )
  END AS held_bytes
FROM disk AS d
CROSS JOIN wb_units AS u
-- Not before: pages of swap under writeback are in dirty_max_bytes.
WHERE d.bdi NOT IN (SELECT o.bdi FROM _swap_only AS o)
  AND (d.is_below = 0 OR d.bdi IN (SELECT f.bdi FROM _filed AS f))
  AND d.bdi NOT IN (SELECT i.bdi FROM idle_volume AS i);
