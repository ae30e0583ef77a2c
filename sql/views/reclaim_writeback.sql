-- SPDX-License-Identifier: Apache-2.0
-- @view     reclaim_writeback
-- @summary  What reclaim did with each dirty folio, as a patched kernel tells
--   it (mm_vmscan_reclaim_writeback), with the counters of its zone, its node
--   and the machine at that moment.
-- @grain    event; order seq
-- @key      seq
-- @needs    raw_mm_vmscan_reclaim_writeback, raw_enum_label, raw_zone,
--   raw_cgroup, reclaim_work, wb_units
-- @events   vmscan:mm_vmscan_reclaim_writeback
-- @column   seq INTEGER order of all records
-- @column   ts INTEGER ns, trace clock
-- @column   tid INTEGER thread that reclaims
-- @column   comm TEXT its name
-- @column   reclaimer TEXT kswapd, direct, memcg (a cgroup at its limit), node
--   (vm.zone_reclaim_mode), proactive (memory.reclaim) or other
-- @column   invocation INTEGER of reclaim_work
-- @column   memcg_id INTEGER memory cgroup that was reclaimed; 0 = the machine
-- @column   cgroup_path TEXT its path, where the run's cgroups file has a
--   cgroup with this number; NULL = not known
-- @column   node INTEGER memory node
-- @column   zone TEXT zone: the kernel's name for it, else that of zoneinfo,
--   else its number
-- @column   kind TEXT anon (tmpfs and shmem among them), file or unknown
-- @column   outcome TEXT submitted (nr_vmscan_write), declined (a file's:
--   marked for immediate reclaim), refused (no swap, locked) or kept
-- @column   pages_count INTEGER pages of the folio
-- @column   device TEXT major:minor of the file's file system; NULL = no file
-- @column   ino INTEGER inode number of the file; NULL = no file
-- @column   priority_count INTEGER pressure: 12 = little, 0 = all must go
-- @column   zone_inactive_bytes INTEGER inactive pages of the zone
-- @column   zone_active_bytes INTEGER active pages of the zone
-- @column   zone_pending_bytes INTEGER dirty and writeback pages of the zone
-- @column   node_inactive_file_bytes INTEGER inactive file pages of the node
-- @column   node_active_file_bytes INTEGER active file pages of the node
-- @column   node_dirty_bytes INTEGER dirty pages of the node
-- @column   node_writeback_bytes INTEGER pages of the node under writeback
-- @column   inactive_file_bytes INTEGER inactive file pages of the machine
-- @column   active_file_bytes INTEGER active file pages of the machine
-- @column   dirty_bytes INTEGER dirty pages of the machine
-- @column   writeback_bytes INTEGER pages of the machine under writeback
-- @source   kernel-tracepoints/; mm/vmscan.c shrink_folio_list()
-- @materialize
CREATE VIEW reclaim_writeback AS
WITH
  zone_name AS MATERIALIZED (
    SELECT e.value AS zid, min(e.label) AS zone
    FROM raw_enum_label AS e
    WHERE e.event = 'vmscan:mm_vmscan_reclaim_writeback' AND e.field = 'zid'
    GROUP BY e.value
  ),
  cgroup_name AS MATERIALIZED (
    SELECT c.cgroup_ino, min(c.path) AS path
    FROM raw_cgroup AS c
    GROUP BY c.cgroup_ino
  )
SELECT
  y.seq,
  y.ts,
  y.tid,
  w.comm,
  w.reclaimer,
  w.invocation,
  y.memcg_id,
  c.path AS cgroup_path,
  y.nid AS node,
  coalesce(
    n.zone,
    (
      SELECT min(z.zone)
      FROM raw_zone AS z
      WHERE z.node = y.nid
        AND y.pfn >= z.start_pfn
        AND y.pfn < z.start_pfn + z.spanned_count
    ),
    'zone ' || y.zid
  ) AS zone,
  CASE
    WHEN y.reclaim_flags & 3 = 1 THEN 'anon'
    WHEN y.reclaim_flags & 3 = 2 THEN 'file'
    ELSE 'unknown'
  END AS kind,
  CASE y.outcome
    WHEN 0 THEN 'submitted'
    WHEN 1 THEN 'declined'
    WHEN 2 THEN 'refused'
    WHEN 3 THEN 'kept'
  END AS outcome,
  y.nr_pages AS pages_count,
  CASE WHEN y.ino <> 0 THEN y.dev_major || ':' || y.dev_minor END AS device,
  nullif(y.ino, 0) AS ino,
  y.priority AS priority_count,
  (y.z_inactive_file + y.z_inactive_anon) * u.page_bytes AS zone_inactive_bytes,
  (y.z_active_file + y.z_active_anon) * u.page_bytes AS zone_active_bytes,
  y.z_write_pending * u.page_bytes AS zone_pending_bytes,
  y.n_inactive_file * u.page_bytes AS node_inactive_file_bytes,
  y.n_active_file * u.page_bytes AS node_active_file_bytes,
  y.n_dirty * u.page_bytes AS node_dirty_bytes,
  y.n_writeback * u.page_bytes AS node_writeback_bytes,
  y.g_inactive_file * u.page_bytes AS inactive_file_bytes,
  y.g_active_file * u.page_bytes AS active_file_bytes,
  y.g_dirty * u.page_bytes AS dirty_bytes,
  y.g_writeback * u.page_bytes AS writeback_bytes
FROM raw_mm_vmscan_reclaim_writeback AS y
CROSS JOIN wb_units AS u
JOIN reclaim_work AS w ON w.seq = y.seq
LEFT JOIN zone_name AS n ON n.zid = y.zid
LEFT JOIN cgroup_name AS c ON c.cgroup_ino = y.memcg_id;
