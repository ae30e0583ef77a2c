-- SPDX-License-Identifier: Apache-2.0
-- Series that wbscope record samples beside the trace: backing devices, disks,
-- cgroups, pressure, /proc. Without them these views have no rows.

-- @view     wb_usage
-- @summary  What each disk that did something, each bdi that had dirty pages
--   and each cgroup that writes did between two samples, and how long tasks
--   stood still for want of a resource. Of a bdi from 6.10 on also what each
--   cgroup writes to it; the bdi's own rows are those of the root cgroup up to
--   6.9, of all cgroups later.
-- @grain    sample of a disk, a bdi, a cgroup or a resource; order source,
--   object, cgroup_ino, ts
-- @column   source TEXT block (/sys/block), bdi (debugfs), cgroup or psi
--   (/proc/pressure)
-- @column   object TEXT disk, such as vda; folder of a cgroup, NULL = not
--   recorded; cpu, io or memory; NULL of a bdi
-- @column   ts INTEGER ns, trace clock, of the later sample
-- @column   dur_ns INTEGER since the sample before; NULL = the first one of a
--   cgroup or a bdi, or its counters went back: another device has the name, or
--   from 6.10 on a cgroup is gone, whose part the bdi's own row had. Then there
--   are no counts either
-- @column   device TEXT of a disk, major:minor, NULL = not recorded; bdi
-- @column   cgroup_ino INTEGER inode of a cgroup; of a bdi the cgroup that owns
--   the wb, 1 = root, NULL = the bdi as a whole
-- @column   reads_count INTEGER requests of a disk that completed
-- @column   writes_count INTEGER requests of a disk that completed
-- @column   read_bytes INTEGER of these; of a cgroup by io.stat, NULL = no io
--   controller
-- @column   written_bytes INTEGER likewise; of a bdi: pages
-- @column   dirtied_bytes INTEGER of a bdi: dirtied, below 0 where more was
--   redirtied
-- @column   busy_ns INTEGER a disk had a request in flight (io_ticks); in steps
--   of a jiffy from 5.0 on
-- @column   queued_ns INTEGER requests of a disk times the time that they took
-- @column   dirty_bytes INTEGER of a cgroup or a bdi: dirty pages, not under
--   writeback
-- @column   writeback_bytes INTEGER of a cgroup or a bdi: pages under writeback
-- @column   wb_thresh_bytes INTEGER of a bdi: its share of the dirty threshold
-- @column   thresh_bytes INTEGER dirty threshold of the machine, in rows of
--   whole bdis
-- @column   bg_thresh_bytes INTEGER background threshold of the machine,
--   likewise
-- @column   write_bw_bytes_per_s INTEGER of a bdi: the kernel's smoothed
--   estimate
-- @column   file_bytes INTEGER of a cgroup: page cache
-- @column   memory_bytes INTEGER of a cgroup: all its memory; NULL on version 1
-- @column   memory_high_bytes INTEGER of a cgroup: memory.high; NULL = none
-- @column   memory_max_bytes INTEGER of a cgroup: memory.max; NULL = none
-- @column   max_events_count INTEGER times that a cgroup ran into memory.max
-- @column   some_ns INTEGER time in which a task of a CPU waited, mean of CPUs
--   by their time not idle; of one CPU: at least one task waited. Of a cgroup:
--   for I/O
-- @column   full_ns INTEGER the same of the time in which a task waited and no
--   other could run; NULL = not told. Of a cgroup: for I/O
-- @column   memory_full_ns INTEGER all tasks of a cgroup waited for memory
-- @source   Documentation/block/stat.rst, Documentation/accounting/psi.rst,
--   Documentation/admin-guide/cgroup-v2.rst; mm/backing-dev.c
--   bdi_debug_stats_show(), cgwb_debug_stats_show()
CREATE VIEW wb_usage AS
SELECT
  'block' AS source,
  b.disk AS object,
  b.ts, b.dur_ns, b.device,
  NULL AS cgroup_ino,
  b.reads_count, b.writes_count, b.read_bytes, b.written_bytes,
  NULL AS dirtied_bytes,
  b.busy_ns, b.queued_ns,
  NULL AS dirty_bytes,
  NULL AS writeback_bytes,
  NULL AS wb_thresh_bytes,
  NULL AS thresh_bytes,
  NULL AS bg_thresh_bytes,
  NULL AS write_bw_bytes_per_s,
  NULL AS file_bytes,
  NULL AS memory_bytes,
  NULL AS memory_high_bytes,
  NULL AS memory_max_bytes,
  NULL AS max_events_count,
  NULL AS some_ns,
  NULL AS full_ns,
  NULL AS memory_full_ns
FROM _block_sample AS b
UNION ALL
SELECT
  'bdi',
  NULL, d.ts, d.dur_ns, d.bdi, d.cgroup_ino, NULL, NULL, NULL, d.written_bytes,
  d.dirtied_bytes, NULL, NULL, d.dirty_bytes, d.writeback_bytes,
  d.wb_thresh_bytes, d.thresh_bytes, d.bg_thresh_bytes, d.write_bw_bytes_per_s,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM _bdi_sample AS d
UNION ALL
SELECT
  'cgroup',
  c.path, c.ts, c.dur_ns, NULL, c.cgroup_ino, NULL, NULL, c.read_bytes,
  c.written_bytes, NULL, NULL, NULL, c.dirty_bytes, c.writeback_bytes, NULL,
  NULL, NULL, NULL, c.file_bytes, c.memory_bytes, c.memory_high_bytes,
  c.memory_max_bytes, c.max_events_count, c.io_some_ns, c.io_full_ns,
  c.memory_full_ns
FROM _cgroup_sample AS c
UNION ALL
SELECT
  'psi',
  p.resource, p.ts, p.dur_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  p.some_ns, p.full_ns, NULL
FROM _pressure_sample AS p;

-- @view     _block_sample
-- @summary  What each disk that did something did between two samples of
--   /sys/block/*/stat.
-- @grain    sample but the first, and that in which the counters went back:
--   another disk has the name; order disk, ts
-- @column   ts INTEGER as in wb_usage
-- @column   dur_ns INTEGER as in wb_usage
-- @column   disk TEXT its name, such as vda
-- @column   device TEXT as in wb_usage
-- @column   reads_count INTEGER as in wb_usage
-- @column   writes_count INTEGER as in wb_usage
-- @column   read_bytes INTEGER as in wb_usage
-- @column   written_bytes INTEGER as in wb_usage
-- @column   busy_ns INTEGER as in wb_usage
-- @column   queued_ns INTEGER as in wb_usage
-- @source   Documentation/block/stat.rst
-- @materialize
CREATE VIEW _block_sample AS
WITH
  told AS (
    SELECT
      s.ts,
      s.object AS disk,
      max(CASE WHEN s.name = 'read_ios' THEN s.value END) AS reads,
      max(CASE WHEN s.name = 'write_ios' THEN s.value END) AS writes,
      max(CASE WHEN s.name = 'read_sectors' THEN s.value END) AS read_sectors,
      max(CASE WHEN s.name = 'write_sectors' THEN s.value END)
        AS write_sectors,
      max(CASE WHEN s.name = 'io_ticks' THEN s.value END) AS io_ticks,
      max(CASE WHEN s.name = 'time_in_queue' THEN s.value END) AS queue_ticks
    FROM raw_sample AS s
    WHERE s.source = 'block' AND s.sample = 'sampled'
    GROUP BY s.ts, s.object
  ),
  used AS (
    SELECT t.disk
    FROM told AS t
    GROUP BY t.disk
    HAVING min(t.reads + t.writes) < max(t.reads + t.writes)
  ),
  gained AS (
    SELECT
      t.ts, t.disk,
      t.ts - lag(t.ts) OVER disk AS dur_ns,
      ((t.reads - lag(t.reads) OVER disk + u.long_half) & u.long_mask)
        - u.long_half AS reads,
      ((t.writes - lag(t.writes) OVER disk + u.long_half) & u.long_mask)
        - u.long_half AS writes,
      (
        (t.read_sectors - lag(t.read_sectors) OVER disk + u.long_half)
        & u.long_mask
      ) - u.long_half AS read_sectors,
      (
        (t.write_sectors - lag(t.write_sectors) OVER disk + u.long_half)
        & u.long_mask
      ) - u.long_half AS write_sectors,
      -- Of 32 bits on every kernel.
      (
        (t.io_ticks - lag(t.io_ticks) OVER disk + (1 << 31))
        & ((1 << 32) - 1)
      ) - (1 << 31) AS io_ticks,
      (
        (t.queue_ticks - lag(t.queue_ticks) OVER disk + (1 << 31))
        & ((1 << 32) - 1)
      ) - (1 << 31) AS queue_ticks
    FROM told AS t
    CROSS JOIN wb_units AS u
    WHERE t.disk IN (SELECT n.disk FROM used AS n)
    WINDOW disk AS (PARTITION BY t.disk ORDER BY t.ts)
  )
SELECT
  g.ts, g.dur_ns, g.disk, n.device,
  g.reads AS reads_count,
  g.writes AS writes_count,
  g.read_sectors * u.sector_bytes AS read_bytes,
  g.write_sectors * u.sector_bytes AS written_bytes,
  g.io_ticks * u.ms_ns AS busy_ns,
  g.queue_ticks * u.ms_ns AS queued_ns
FROM gained AS g
CROSS JOIN wb_units AS u
LEFT JOIN (
  SELECT
    s.object AS disk,
    max(CASE WHEN s.name = 'dev_major' THEN s.value END) || ':'
      || max(CASE WHEN s.name = 'dev_minor' THEN s.value END) AS device
  FROM raw_sample AS s
  WHERE s.source = 'block' AND s.name IN ('dev_major', 'dev_minor')
  GROUP BY s.object
) AS n ON n.disk = g.disk
WHERE g.dur_ns > 0
  AND coalesce(
    g.reads < 0 OR g.writes < 0 OR g.read_sectors < 0 OR g.write_sectors < 0
      OR g.io_ticks < 0 OR g.queue_ticks < 0,
    0
  ) = 0;

-- @view     _bdi_sample
-- @summary  Dirty pages, pages under writeback, threshold and bandwidth of each
--   bdi that had any, as its statistics in debugfs say. From 6.10 on also of
--   each cgroup that writes to it; the bdi's own rows are those of the root
--   cgroup up to 6.9, of all cgroups later.
-- @grain    sample; order bdi, cgroup_ino, ts
-- @column   ts INTEGER as in wb_usage
-- @column   dur_ns INTEGER as in wb_usage
-- @column   bdi TEXT device of wb_usage
-- @column   cgroup_ino INTEGER as in wb_usage
-- @column   dirty_bytes INTEGER as in wb_usage
-- @column   writeback_bytes INTEGER as in wb_usage
-- @column   wb_thresh_bytes INTEGER as in wb_usage
-- @column   thresh_bytes INTEGER as in wb_usage
-- @column   bg_thresh_bytes INTEGER as in wb_usage
-- @column   write_bw_bytes_per_s INTEGER as in wb_usage
-- @column   dirtied_bytes INTEGER as in wb_usage
-- @column   written_bytes INTEGER as in wb_usage
-- @source   mm/backing-dev.c bdi_debug_stats_show(), cgwb_debug_stats_show()
-- @materialize
CREATE VIEW _bdi_sample AS
WITH
  told AS (
    SELECT
      s.ts,
      CASE s.source
        WHEN 'bdi' THEN s.object
        ELSE substr(s.object, 1, instr(s.object, '/') - 1)
      END AS bdi,
      CASE s.source
        WHEN 'wb'
          THEN CAST(substr(s.object, instr(s.object, '/') + 1) AS INTEGER)
      END AS cgroup_ino,
      max(CASE WHEN s.name IN ('BdiReclaimable', 'WbReclaimable')
        THEN s.value END) AS dirty,
      max(CASE WHEN s.name IN ('BdiWriteback', 'WbWriteback')
        THEN s.value END) AS writeback,
      max(CASE WHEN s.name IN ('BdiDirtyThresh', 'WbDirtyThresh')
        THEN s.value END) AS wb_thresh,
      max(CASE WHEN s.name = 'DirtyThresh' THEN s.value END) AS thresh,
      max(CASE WHEN s.name = 'BackgroundThresh' THEN s.value END)
        AS bg_thresh,
      max(CASE WHEN s.name IN ('BdiWriteBandwidth', 'WbWriteBandwidth')
        THEN s.value END) AS write_bw,
      max(CASE WHEN s.name IN ('BdiDirtied', 'WbDirtied')
        THEN s.value END) AS dirtied,
      max(CASE WHEN s.name IN ('BdiWritten', 'WbWritten')
        THEN s.value END) AS written
    FROM raw_sample AS s
    WHERE s.source IN ('bdi', 'wb') AND s.sample = 'sampled'
    GROUP BY s.ts, s.source, s.object
  ),
  used AS (
    SELECT t.bdi
    FROM told AS t
    GROUP BY t.bdi
    HAVING max(t.dirty + t.writeback) > 0 OR min(t.dirtied) < max(t.dirtied)
  ),
  gained AS (
    SELECT
      t.*,
      t.ts - lag(t.ts) OVER wb AS dur_ns,
      ((t.dirtied - lag(t.dirtied) OVER wb + u.long_half) & u.long_mask)
        - u.long_half AS dirtied_kib,
      ((t.written - lag(t.written) OVER wb + u.long_half) & u.long_mask)
        - u.long_half AS written_kib,
      lag(t.dirty + t.writeback) OVER wb AS held_kib
    FROM told AS t
    CROSS JOIN wb_units AS u
    WHERE t.bdi IN (SELECT n.bdi FROM used AS n)
    WINDOW wb AS (PARTITION BY t.bdi, t.cgroup_ino ORDER BY t.ts)
  ),
  counted AS (
    SELECT
      g.*,
      -- Pages that are redirtied were dirty.
      CASE
        WHEN g.written_kib < 0 OR g.dirtied_kib < -g.held_kib THEN NULL
        ELSE 1
      END AS same
    FROM gained AS g
  )
SELECT
  g.ts,
  g.dur_ns * g.same AS dur_ns,
  g.bdi, g.cgroup_ino,
  g.dirty * u.kib_bytes AS dirty_bytes,
  g.writeback * u.kib_bytes AS writeback_bytes,
  g.wb_thresh * u.kib_bytes AS wb_thresh_bytes,
  g.thresh * u.kib_bytes AS thresh_bytes,
  g.bg_thresh * u.kib_bytes AS bg_thresh_bytes,
  g.write_bw * u.kib_bytes AS write_bw_bytes_per_s,
  g.same * g.dirtied_kib * u.kib_bytes AS dirtied_bytes,
  g.same * g.written_kib * u.kib_bytes AS written_bytes
FROM counted AS g
CROSS JOIN wb_units AS u;

-- @view     _cgroup_sample
-- @summary  Dirty pages, memory and I/O of each cgroup that writes.
-- @grain    sample; order cgroup_ino, ts
-- @column   ts INTEGER as in wb_usage
-- @column   dur_ns INTEGER as in wb_usage
-- @column   cgroup_ino INTEGER as in wb_usage
-- @column   path TEXT its folder; NULL = not recorded
-- @column   dirty_bytes INTEGER as in wb_usage
-- @column   writeback_bytes INTEGER as in wb_usage
-- @column   file_bytes INTEGER as in wb_usage
-- @column   memory_bytes INTEGER as in wb_usage
-- @column   memory_high_bytes INTEGER as in wb_usage
-- @column   memory_max_bytes INTEGER as in wb_usage
-- @column   max_events_count INTEGER as in wb_usage, since the sample before
-- @column   read_bytes INTEGER as in wb_usage
-- @column   written_bytes INTEGER as in wb_usage
-- @column   io_some_ns INTEGER some_ns of wb_usage
-- @column   io_full_ns INTEGER full_ns of wb_usage
-- @column   memory_full_ns INTEGER as in wb_usage
-- @source   Documentation/admin-guide/cgroup-v2.rst, mm/memcontrol.c
-- @materialize
CREATE VIEW _cgroup_sample AS
WITH
  split AS (
    SELECT
      s.ts,
      CAST(substr(s.object, 1, instr(s.object, '/') - 1) AS INTEGER)
        AS cgroup_ino,
      substr(s.object, instr(s.object, '/') + 1) AS file,
      s.name, s.value
    FROM raw_sample AS s
    WHERE s.source = 'cgroup' AND s.sample = 'sampled'
  ),
  told AS (
    SELECT
      c.ts, c.cgroup_ino,
      max(CASE WHEN c.file = 'memory.stat' AND c.name IN ('file_dirty', 'dirty')
        THEN c.value END) AS dirty,
      max(CASE
        WHEN c.file = 'memory.stat'
          AND c.name IN ('file_writeback', 'writeback')
        THEN c.value END) AS writeback,
      max(CASE WHEN c.file = 'memory.stat' AND c.name IN ('file', 'cache')
        THEN c.value END) AS file,
      max(CASE WHEN c.file = 'memory.current' THEN c.value END) AS memory,
      max(CASE WHEN c.file = 'memory.high' THEN c.value END) AS memory_high,
      max(CASE WHEN c.file = 'memory.max' THEN c.value END) AS memory_max,
      max(CASE WHEN c.file = 'memory.events' AND c.name = 'max'
        THEN c.value END) AS max_events,
      max(CASE WHEN c.file = 'memory.events' AND c.name = 'high'
        THEN c.value END) AS high_events,
      sum(CASE WHEN c.file = 'io.stat' AND c.name GLOB '* rbytes'
        THEN c.value END) AS rbytes,
      sum(CASE WHEN c.file = 'io.stat' AND c.name GLOB '* wbytes'
        THEN c.value END) AS wbytes,
      max(CASE WHEN c.file = 'io.pressure' AND c.name = 'some_total'
        THEN c.value END) AS io_some,
      max(CASE WHEN c.file = 'io.pressure' AND c.name = 'full_total'
        THEN c.value END) AS io_full,
      max(CASE WHEN c.file = 'memory.pressure' AND c.name = 'some_total'
        THEN c.value END) AS memory_some,
      max(CASE WHEN c.file = 'memory.pressure' AND c.name = 'full_total'
        THEN c.value END) AS memory_full
    FROM split AS c
    GROUP BY c.ts, c.cgroup_ino
  ),
  gained AS (
    SELECT
      t.*,
      t.ts - lag(t.ts) OVER one AS dur_ns,
      t.max_events - lag(t.max_events) OVER one AS max_events_gained,
      t.high_events - lag(t.high_events) OVER one AS high_events_gained,
      t.rbytes - lag(t.rbytes) OVER one AS rbytes_gained,
      t.wbytes - lag(t.wbytes) OVER one AS wbytes_gained,
      t.io_some - lag(t.io_some) OVER one AS io_some_gained,
      t.io_full - lag(t.io_full) OVER one AS io_full_gained,
      t.memory_some - lag(t.memory_some) OVER one AS memory_some_gained,
      t.memory_full - lag(t.memory_full) OVER one AS memory_full_gained
    FROM told AS t
    WINDOW one AS (PARTITION BY t.cgroup_ino ORDER BY t.ts)
  ),
  counted AS (
    SELECT
      g.*,
      CASE
        WHEN g.max_events_gained < 0 OR g.high_events_gained < 0
          OR g.rbytes_gained < 0 OR g.wbytes_gained < 0
          OR g.io_some_gained < 0 OR g.io_full_gained < 0
          OR g.memory_some_gained < 0 OR g.memory_full_gained < 0
          THEN NULL
        ELSE 1
      END AS same
    FROM gained AS g
  )
SELECT
  g.ts,
  g.dur_ns * g.same AS dur_ns,
  g.cgroup_ino, c.path,
  g.dirty AS dirty_bytes,
  g.writeback AS writeback_bytes,
  g.file AS file_bytes,
  g.memory AS memory_bytes,
  g.memory_high AS memory_high_bytes,
  g.memory_max AS memory_max_bytes,
  g.same * g.max_events_gained AS max_events_count,
  g.same * g.rbytes_gained AS read_bytes,
  g.same * g.wbytes_gained AS written_bytes,
  g.same * g.io_some_gained * u.us_ns AS io_some_ns,
  g.same * g.io_full_gained * u.us_ns AS io_full_ns,
  g.same * g.memory_full_gained * u.us_ns AS memory_full_ns
FROM counted AS g
CROSS JOIN wb_units AS u
LEFT JOIN (
  SELECT k.cgroup_ino, min(k.path) AS path
  FROM raw_cgroup AS k
  GROUP BY k.cgroup_ino
) AS c ON c.cgroup_ino = g.cgroup_ino;

-- @view     _pressure_sample
-- @summary  How long tasks stood still for want of a resource, between two
--   samples of /proc/pressure.
-- @grain    sample but the first; order resource, ts
-- @column   ts INTEGER as in wb_usage
-- @column   dur_ns INTEGER as in wb_usage
-- @column   resource TEXT cpu, io or memory
-- @column   some_ns INTEGER as in wb_usage
-- @column   full_ns INTEGER as in wb_usage
-- @source   Documentation/accounting/psi.rst; kernel/sched/psi.c
-- @materialize
CREATE VIEW _pressure_sample AS
WITH
  told AS (
    SELECT
      s.ts,
      s.object AS resource,
      max(CASE WHEN s.name = 'some_total' THEN s.value END) AS some_us,
      max(CASE WHEN s.name = 'full_total' THEN s.value END) AS full_us
    FROM raw_sample AS s
    WHERE s.source = 'psi' AND s.sample = 'sampled'
    GROUP BY s.ts, s.object
  ),
  gained AS (
    SELECT
      t.ts, t.resource,
      t.ts - lag(t.ts) OVER one AS dur_ns,
      t.some_us - lag(t.some_us) OVER one AS some_us,
      t.full_us - lag(t.full_us) OVER one AS full_us
    FROM told AS t
    WINDOW one AS (PARTITION BY t.resource ORDER BY t.ts)
  )
SELECT
  g.ts, g.dur_ns, g.resource,
  g.some_us * u.us_ns AS some_ns,
  g.full_us * u.us_ns AS full_ns
FROM gained AS g
CROSS JOIN wb_units AS u
WHERE g.dur_ns > 0 AND coalesce(g.some_us < 0 OR g.full_us < 0, 0) = 0;
