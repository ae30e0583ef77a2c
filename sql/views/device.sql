-- SPDX-License-Identifier: Apache-2.0
-- What backing devices are called, as the recorder noted it.

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
    SELECT m.line, m.device, substr(m.source, 6), m.mount
    FROM raw_mount AS m
    WHERE m.source GLOB '/dev/*' AND NOT EXISTS (SELECT 1 FROM raw_bdi_mount)
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
  parts AS (
    SELECT m.device, min(p.bdi) AS bdi
    FROM raw_mount AS m
    JOIN raw_bdi_mount AS p ON p.mount = m.mount AND p.bdi GLOB '[1-9]*:*'
    WHERE m.source GLOB '/dev/*' AND m.device GLOB '[1-9]*:[0-9]*'
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
  SELECT p.bdi, ' ' || group_concat(p.device, ' ') || ' ' AS partitions
  FROM parts AS p
  GROUP BY p.bdi
) AS n ON n.bdi = r.bdi
WHERE r.place = 1;
