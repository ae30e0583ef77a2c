-- SPDX-License-Identifier: Apache-2.0
-- What the recorder noted of the machine: settings, devices, swap. Without
-- these files the views have no rows.

-- @view     wb_device
-- @summary  What backing devices are called: name and first mount point. A disk
--   with several mounted partitions has its own name.
-- @grain    backing device; order bdi
-- @key      bdi
-- @column   bdi TEXT as events name it: major:minor; of btrfs btrfs-1
-- @column   device TEXT its name, such as vda; NULL = not known
-- @column   mount TEXT first mount point; NULL = not known
-- @source   man 5 proc: mountinfo; docs/record.md
-- @materialize
CREATE VIEW wb_device AS
WITH
  placed AS (
    SELECT n.line, n.bdi, n.device, n.mount
    FROM raw_bdi_mount AS n
    UNION ALL
    SELECT m.line, m.device, m.source, m.mount
    FROM _mount AS m
    WHERE NOT EXISTS (SELECT 1 FROM raw_bdi_mount)
  ),
  -- sda of sda1, nvme0n1 of nvme0n1p1; exports of NFS (0:45) are no partitions.
  halved AS (
    SELECT
      p.*,
      CASE WHEN p.bdi GLOB '[1-9]*:*' THEN rtrim(p.device, '0123456789')
        ELSE p.device
      END AS front
    FROM placed AS p
  ),
  cut AS (
    SELECT
      h.*,
      CASE
        WHEN h.front = h.device THEN h.device
        WHEN h.front GLOB '*[0-9]p' THEN substr(h.front, 1, length(h.front) - 1)
        WHEN h.front = '' THEN h.device
        ELSE h.front
      END AS disk
    FROM halved AS h
  ),
  ranked AS (
    SELECT
      c.bdi, c.device, c.disk,
      min(c.device) OVER bdi < max(c.device) OVER bdi
        AND min(c.disk) OVER bdi = max(c.disk) OVER bdi AS is_several,
      c.mount,
      row_number() OVER (PARTITION BY c.bdi ORDER BY c.line) AS place
    FROM cut AS c
    WINDOW bdi AS (PARTITION BY c.bdi)
  )
SELECT
  r.bdi,
  -- Several partitions are the disk.
  CASE WHEN r.is_several THEN r.disk ELSE r.device END AS device,
  r.mount
FROM ranked AS r
WHERE r.place = 1;

-- @view     wb_partition
-- @shared
-- @summary  Partitions that file systems are on: events of ext4, jbd2 and XFS
--   name these, while pages and requests are those of the disk.
-- @grain    partition; order partition
-- @key      partition
-- @column   partition TEXT major:minor
-- @column   bdi TEXT of the disk, as other events name it
-- @source   man 5 proc: mountinfo; docs/record.md: bdis
-- @materialize
CREATE VIEW wb_partition AS
SELECT m.device AS partition, min(p.bdi) AS bdi
FROM _mount AS m
JOIN raw_bdi_mount AS p ON p.mount = m.mount AND p.bdi GLOB '[1-9]*:*'
WHERE m.device GLOB '[1-9]*:[0-9]*'
GROUP BY m.device
-- Where several lie on one place, nothing tells which is which.
HAVING min(p.bdi) = max(p.bdi) AND min(p.bdi) <> m.device;

-- @view     wb_data_journal
-- @shared
-- @summary  Where all journals get the data of files, too: each ext3 and ext4
--   on the device is mounted with data=journal. Set in the file system itself
--   (tune2fs -o journal_data) or of single files (chattr +j) it is not seen.
-- @grain    device; order bdi
-- @key      bdi
-- @column   bdi TEXT major:minor, as other events name it
-- @source   Documentation/admin-guide/ext4.rst; fs/ext4/super.c
--   ext4_show_options()
-- @materialize
CREATE VIEW wb_data_journal AS
SELECT coalesce(n.bdi, m.device) AS bdi
FROM _mount AS m
LEFT JOIN wb_partition AS n ON n.partition = m.device
WHERE m.type GLOB 'ext[34]'
GROUP BY 1
HAVING min(',' || m.options || ',' GLOB '*,data=journal,*');

-- @view     wb_stack
-- @shared
-- @summary  The disks that a device lies on, or a file system with a bdi of its
--   own: LVM, dm-crypt, md, btrfs. Its requests are theirs, and what lies
--   between has none. Without the file stacks there are no rows.
-- @grain    device, disk; order bdi, disk
-- @optional block:block_rq_issue, block:block_rq_complete
-- @column   bdi TEXT of the device, as events name it; one that has requests of
--   its own (multipath) is not here
-- @column   disk TEXT major:minor of a disk at the bottom
-- @source   Documentation/ABI/testing/sysfs-block: slaves; docs/record.md
-- @materialize
CREATE VIEW wb_stack AS
WITH RECURSIVE
  below(bdi, disk, depth) AS (
    SELECT n.bdi, n.disk, 1
    FROM _stack_right AS n
    UNION
    SELECT b.bdi, n.disk, b.depth + 1
    FROM below AS b
    JOIN _stack_right AS n ON n.bdi = b.disk
    WHERE b.depth < (SELECT v.depth_most_count FROM wb_rule AS v)
  )
SELECT DISTINCT b.bdi, b.disk
FROM below AS b
WHERE b.disk NOT IN (SELECT n.bdi FROM _stack_right AS n)
  AND b.bdi NOT IN (
    SELECT device!(i) FROM raw_block_rq_issue AS i
    UNION
    SELECT device!(c) FROM raw_block_rq_complete AS c
  );

-- @view     wb_stack_own
-- @shared
-- @summary  When a device that lies on disks (wb_stack) had bios itself, by its
--   own counters: dm-crypt has one while it is enciphered, and the disk has
--   not yet got it. A file system with a bdi of its own has those of the one
--   device that it lies on.
-- @grain    sample of a device; order bdi, to_ts
-- @column   bdi TEXT of the device, as events name it
-- @column   from_ts INTEGER ns, start of the time that the sample adds
-- @column   to_ts INTEGER ns, the sample. The kernel counts the time of a bio
--   when it ends, so the time may reach back beyond the sample before
-- @column   busy_ns INTEGER from the one to the other
-- @column   written_bytes INTEGER that the sample adds
-- @source   block/blk-core.c update_io_ticks(); drivers/md/dm.c
--   dm_start_io_acct()
-- @materialize
CREATE VIEW wb_stack_own AS
WITH
  stacked AS (
    SELECT DISTINCT
      k.bdi,
      CAST(substr(k.bdi, instr(k.bdi, ':') + 1) AS INTEGER) AS minor
    FROM wb_stack AS k
    WHERE k.bdi GLOB '[0-9]*:[0-9]*'
  ),
  -- A sample that has no number has the kernel's name: dm-0 has the minor 0,
  -- and md127 is 9:127.
  named AS (
    SELECT
      CASE WHEN t.bdi GLOB '9:*' THEN 'md' || t.minor ELSE 'dm-' || t.minor END
        AS disk,
      min(t.bdi) AS bdi
    FROM stacked AS t
    GROUP BY 1
    HAVING count(*) = 1
  ),
  own AS (
    SELECT coalesce(s.device, n.bdi) AS bdi, s.*
    FROM wb_block_sample AS s
    LEFT JOIN named AS n ON n.disk = s.disk
    WHERE coalesce(s.device, n.bdi) IN (SELECT t.bdi FROM stacked AS t)
  ),
  -- Old kernels count a whole jiffy for each bio, however short: the time is
  -- right where bios waited at least as long.
  watched AS (
    SELECT o.bdi
    FROM own AS o
    GROUP BY o.bdi
    HAVING sum(o.queued_ns) >= sum(o.busy_ns)
  ),
  -- btrfs on dm-crypt.
  borrowed AS (
    SELECT r.bdi, min(r.disk) AS device
    FROM _stack_right AS r
    WHERE r.bdi NOT GLOB '[0-9]*:[0-9]*'
    GROUP BY r.bdi
    HAVING count(*) = 1
  )
SELECT
  b.bdi,
  o.ts - o.busy_ns AS from_ts,
  o.ts AS to_ts,
  o.busy_ns, o.written_bytes
FROM (
  SELECT w.bdi, w.bdi AS device FROM watched AS w
  UNION ALL
  SELECT r.bdi, r.device FROM borrowed AS r
) AS b
JOIN watched AS w ON w.bdi = b.device
JOIN own AS o ON o.bdi = w.bdi
WHERE o.busy_ns > 0;

-- @view     wb_device_asked
-- @shared
-- @summary  The devices that the filter --bdi means: that one, and the disks
--   that it lies on.
-- @grain    device; order device
-- @column   device TEXT major:minor; NULL = there is no filter
CREATE VIEW wb_device_asked AS
SELECT p.bdi AS device
FROM wb_params AS p
UNION
SELECT k.disk
FROM wb_params AS p
JOIN wb_stack AS k ON k.bdi = p.bdi;

-- @view     wb_dirty_setting
-- @shared
-- @summary  The settings of dirty limits; of a pair of bytes and ratio, the one
--   that is in force.
-- @grain    one row
-- @column   dirty_bytes INTEGER vm.dirty_bytes; NULL = the ratio is in force,
--   or nothing tells
-- @column   dirty_ratio INTEGER vm.dirty_ratio, per cent; NULL likewise
-- @column   dirty_background_bytes INTEGER vm.dirty_background_bytes; NULL
--   likewise
-- @column   dirty_background_ratio INTEGER vm.dirty_background_ratio; NULL
--   likewise
-- @column   watermark_scale_factor INTEGER vm.watermark_scale_factor; NULL =
--   nothing tells
-- @column   round_bytes INTEGER 1 MiB: what is proposed is a multiple of it
-- @column   least_bytes INTEGER a lower limit is not kept: four times what the
--   counters of a wb may be off, as each CPU counts some pages by itself; NULL
--   = nothing tells how many CPUs there are
-- @column   most_bytes INTEGER a fifth of the memory, which is the limit by
--   default: no more is proposed; NULL = nothing tells
-- @column   memory_bytes INTEGER the memory; NULL likewise
-- @source   Documentation/admin-guide/sysctl/vm.rst; wb_stat_error(),
--   WB_STAT_BATCH
CREATE VIEW wb_dirty_setting AS
SELECT
  nullif(
    max(CASE s.name WHEN 'vm.dirty_bytes' THEN s.value END), 0
  ) AS dirty_bytes,
  -- 0 is a ratio, too, where the bytes are 0.
  CASE
    WHEN max(CASE s.name WHEN 'vm.dirty_bytes' THEN s.value END) = 0
      THEN max(CASE s.name WHEN 'vm.dirty_ratio' THEN s.value END)
    ELSE nullif(max(CASE s.name WHEN 'vm.dirty_ratio' THEN s.value END), 0)
  END AS dirty_ratio,
  nullif(
    max(CASE s.name WHEN 'vm.dirty_background_bytes' THEN s.value END), 0
  ) AS dirty_background_bytes,
  CASE
    WHEN max(CASE s.name WHEN 'vm.dirty_background_bytes' THEN s.value END) = 0
      THEN max(CASE s.name WHEN 'vm.dirty_background_ratio' THEN s.value END)
    ELSE nullif(
      max(CASE s.name WHEN 'vm.dirty_background_ratio' THEN s.value END), 0
    )
  END AS dirty_background_ratio,
  max(CASE s.name WHEN 'vm.watermark_scale_factor' THEN s.value END)
    AS watermark_scale_factor,
  u.kib_bytes * u.kib_bytes AS round_bytes,
  (
    SELECT
      32 * c.value * u.page_bytes * (
        1 + (c.value >> 1 > 0) + (c.value >> 2 > 0) + (c.value >> 3 > 0)
        + (c.value >> 4 > 0) + (c.value >> 5 > 0) + (c.value >> 6 > 0)
        + (c.value >> 7 > 0) + (c.value >> 8 > 0) + (c.value >> 9 > 0)
        + (c.value >> 10 > 0) + (c.value >> 11 > 0) + (c.value >> 12 > 0)
      )
    FROM raw_meta AS c
    WHERE c.key = 'cpus_count'
  ) AS least_bytes,
  i.value * u.kib_bytes / 5 / (u.kib_bytes * u.kib_bytes)
    * (u.kib_bytes * u.kib_bytes) AS most_bytes,
  i.value * u.kib_bytes AS memory_bytes
FROM wb_units AS u
LEFT JOIN _setting AS s ON 1 = 1
LEFT JOIN raw_meminfo AS i
  ON i.name = 'MemTotal' AND i.sample = 'before' AND i.unit = 'kB'
GROUP BY u.kib_bytes, u.page_bytes;

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
--   least_bytes of wb_dirty_setting; NULL = not lower, no less than what was
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
      max(2 * d.disk_bytes_per_s, coalesce(s.least_bytes, 0)) AS wanted_bytes,
      2 * d.disk_bytes_per_s < coalesce(s.least_bytes, 0) AS is_floor,
      s.round_bytes * (
        1 + CAST(
          max(2 * d.disk_bytes_per_s, coalesce(s.least_bytes, 0))
            / s.round_bytes AS INTEGER
        )
      ) AS bytes,
      s.round_bytes * (
        1 + CAST(
          max(d.disk_bytes_per_s / 2, coalesce(s.least_bytes, 0) / 4)
            / s.round_bytes AS INTEGER
        )
      ) AS background_bytes,
      d.backlog_bytes,
      -- The files beside the trace may be of another time: the lower one.
      coalesce(
        min(m.thresh_bytes, s.dirty_bytes), m.thresh_bytes, s.dirty_bytes
      ) AS limit_bytes,
      -- Limited by requests: the more is dirty the more of them merge.
      CASE WHEN d.request_bytes < v.small_request_bytes THEN d.request_bytes END
        AS request_bytes
    FROM sized AS d
    CROSS JOIN wb_rule AS v
    CROSS JOIN wb_dirty_extent AS m
    CROSS JOIN wb_dirty_setting AS s
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

-- @view     wb_swap_device
-- @shared
-- @summary  Where swap lies: on its partition's disk, or on the disk of the
--   file system with the swap file.
-- @grain    swap area; order path
-- @column   bdi TEXT major:minor; NULL = not known, but none that is mounted
-- @source   /proc/swaps
-- @materialize
CREATE VIEW wb_swap_device AS
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

-- @view     _setting
-- @summary  Values of /proc/sys/vm when the recording began.
-- @grain    setting; order name
-- @key      name
-- @column   value INTEGER the number that its value begins with
-- @source   Documentation/admin-guide/sysctl/vm.rst
-- @materialize
CREATE VIEW _setting AS
SELECT s.name, s.number AS value
FROM raw_sysctl AS s
WHERE s.name GLOB 'vm.*' AND s.number >= 0
GROUP BY s.name;

-- @view     _mount
-- @summary  What was mounted on block devices.
-- @grain    line of the file mounts; order line
-- @column   line INTEGER of the file
-- @column   source TEXT its name below /dev
-- @column   options TEXT of the file system
-- @source   man 5 proc: mountinfo
CREATE VIEW _mount AS
SELECT
  m.line, m.device, m.mount, m.type,
  substr(m.source, 6) AS source,
  m.options
FROM raw_mount AS m
WHERE m.source GLOB '/dev/*';

-- @view     _stack_right
-- @summary  What lies right below a device, or a file system with a bdi of its
--   own.
-- @grain    device, device below; order bdi, disk
CREATE VIEW _stack_right AS
SELECT DISTINCT s.bdi, s.disk
FROM raw_stack AS s
WHERE s.bdi <> s.disk;

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
  -- Those that the pages of files are dirty for.
  filed AS (
    SELECT f.bdi
    FROM wb_flushed AS f
    CROSS JOIN wb_rule AS v
    WHERE f.pages_count >= v.few_pages_count
    UNION
    SELECT t.bdi FROM raw_balance_dirty_pages AS t WHERE is_step!(t)
  ),
  -- What its disk writes is of another volume there.
  idle_volume AS (
    SELECT k.bdi
    FROM wb_stack AS k
    JOIN wb_stack AS s ON s.disk = k.disk
    WHERE s.bdi IN (SELECT f.bdi FROM filed AS f)
      AND k.bdi NOT IN (SELECT f.bdi FROM filed AS f)
  ),
  disk AS (
    SELECT
      d.bdi, d.disk_bytes_per_s, d.reached_ratio, d.request_bytes, d.busy_ns,
      m.dirty_max_bytes,
      CAST(d.written_bytes AS INTEGER) AS written_bytes,
      -- What lies on a disk is what is written to, and counts once.
      d.bdi IN (SELECT r.disk FROM _stack_right AS r) AS is_below,
      d.written_bytes >= v.nearly_all_ratio * total(
        CASE WHEN d.bdi NOT IN (SELECT r.disk FROM _stack_right AS r)
          THEN max(d.written_bytes - coalesce(l.written_bytes, 0), 0)
        END
      ) OVER () AS is_main
    FROM wb_disk_rate AS d
    CROSS JOIN wb_dirty_extent AS m
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
            SELECT max(s.wb_dirty_bytes)
            FROM wb_bdi_sample AS s
            CROSS JOIN wb_params AS p
            WHERE s.bdi = d.bdi AND s.cgroup_ino IS NULL
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
WHERE d.bdi NOT IN (SELECT o.bdi FROM wb_swap_only AS o)
  AND (d.is_below = 0 OR d.bdi IN (SELECT f.bdi FROM filed AS f))
  AND d.bdi NOT IN (SELECT i.bdi FROM idle_volume AS i);
