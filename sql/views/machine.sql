-- SPDX-License-Identifier: Apache-2.0
-- What the recorder noted of the machine: settings and devices. Without these
-- files the views have no rows.

-- @view     wb_device
-- @summary  What backing devices are called: name and first mount point. A disk
--   with several mounted partitions has its own name.
-- @grain    backing device; order bdi
-- @key      bdi
-- @column   bdi TEXT as events name it: major:minor; of btrfs btrfs-1
-- @column   device TEXT its name, such as vda; NULL = not known
-- @column   mount TEXT first mount point; NULL = not known
-- @column   partitions TEXT its partitions that file systems are on, with a
--   space before and behind each, as events of ext4, jbd2 and XFS name them,
--   while pages and requests are those of the disk; NULL = none
-- @source   man 5 proc: mountinfo; docs/record.md: bdis
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
  ),
  partition AS (
    SELECT m.device AS partition, min(p.bdi) AS bdi
    FROM _mount AS m
    JOIN raw_bdi_mount AS p ON p.mount = m.mount AND p.bdi GLOB '[1-9]*:*'
    WHERE m.device GLOB '[1-9]*:[0-9]*'
    GROUP BY m.device
    -- Where several lie on one place, nothing tells which is which.
    HAVING min(p.bdi) = max(p.bdi) AND min(p.bdi) <> m.device
  )
SELECT
  r.bdi,
  -- Several partitions are the disk.
  CASE WHEN r.is_several THEN r.disk ELSE r.device END AS device,
  r.mount,
  n.partitions
FROM ranked AS r
LEFT JOIN (
  SELECT p.bdi, ' ' || group_concat(p.partition, ' ') || ' ' AS partitions
  FROM partition AS p
  GROUP BY p.bdi
) AS n ON n.bdi = r.bdi
WHERE r.place = 1;

-- @view     wb_dirty_setting
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
