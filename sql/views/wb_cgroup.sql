-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_cgroup
-- @summary  Numbers for the cgroup paths that kernels 4.3 to 4.5 record instead
--   of inodes: the inode where the run's cgroups file has the path, 1 for the
--   root, else a negative number in order of the paths.
-- @grain    path; order path
-- @needs    raw_balance_dirty_pages, raw_bdi_dirty_ratelimit, raw_cgroup,
--   wb_kernel
-- @events   writeback:balance_dirty_pages
-- @column   path TEXT as recorded, below the mount point
-- @column   cgroup_ino INTEGER inode, or a negative number that stands for it
-- @source   include/trace/events/writeback.h of 4.3: __trace_wb_assign_cgroup()
-- @materialize
CREATE VIEW wb_cgroup AS
WITH
  old_kernel AS (
    SELECT k.version FROM wb_kernel AS k
    WHERE k.version IS NULL OR k.version BETWEEN 4003 AND 4005
  ),
  named AS (
    SELECT b.cgroup_path AS path
    FROM raw_balance_dirty_pages AS b
    WHERE EXISTS (SELECT 1 FROM old_kernel) AND b.cgroup_path IS NOT NULL
    UNION
    SELECT r.cgroup_path
    FROM raw_bdi_dirty_ratelimit AS r
    WHERE EXISTS (SELECT 1 FROM old_kernel) AND r.cgroup_path IS NOT NULL
  ),
  known AS (
    SELECT
      n.path,
      CASE
        WHEN n.path = '/' THEN 1
        ELSE (
          SELECT min(c.cgroup_ino)
          FROM raw_cgroup AS c
          -- The file has whole paths, from wherever cgroups are mounted.
          WHERE substr(c.path, -length(n.path)) = n.path
        )
      END AS cgroup_ino
    FROM named AS n
  )
SELECT
  k.path,
  coalesce(k.cgroup_ino, -row_number() OVER (ORDER BY k.path)) AS cgroup_ino
FROM known AS k;
