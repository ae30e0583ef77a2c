-- SPDX-License-Identifier: Apache-2.0
-- Counters that were sampled, drawn.

-- @timeline tl_vmstat
-- @title    vmstat
-- @order    140
-- @group    vmstat: Counters of /proc/vmstat that have to do with writeback and
--   reclaim. Curves where wbscope record sampled them, else one bar with what
--   each was before and after the trace.
-- @track    before and after: vmstat.before and vmstat.after, which have no
--   time, or the first and the last sample of a Perfetto trace
-- @track    nr_*: /proc/vmstat; pages
-- @track    *: /proc/vmstat
-- @summary  /proc/vmstat before, in and after the run: counters of writeback
--   and reclaim that changed.
-- @grain    counter and sample; order ts
-- @column   arg_more TEXT a line for each counter: before, after and the change
CREATE VIEW tl_vmstat AS
WITH
  chosen AS (
    SELECT v.name
    FROM raw_vmstat AS v
    WHERE
      v.name GLOB 'nr_dirt*'
      OR v.name GLOB 'nr_writ*'
      OR v.name GLOB 'nr_unstable*'
      OR v.name GLOB 'nr_vmscan*'
      OR v.name GLOB 'nr_throttled*'
      OR v.name GLOB 'nr_*active_*'
      OR v.name GLOB 'nr_free_pages'
      OR v.name GLOB 'pgscan*'
      OR v.name GLOB 'pgsteal*'
      OR v.name GLOB 'pswp*'
      OR v.name GLOB 'swp*_zero'
      OR v.name GLOB 'zswp*'
      OR v.name GLOB 'allocstall*'
      OR v.name GLOB 'kswapd*'
      OR v.name GLOB 'pageoutrun'
      OR v.name GLOB 'pgmajfault'
      OR v.name GLOB 'pgrotated'
    GROUP BY v.name
    HAVING min(v.value) < max(v.value) OR count(*) = 1
  ),
  is_sampled AS (
    SELECT count(*) AS samples FROM raw_vmstat AS v WHERE v.sample = 'sampled'
  ),
  change AS (
    SELECT
      v.name || '=' || v.before_value || ' -> ' || v.after_value
        || printf(' (%+d)', v.gained_count) AS line
    FROM wb_vmstat AS v
    WHERE v.gained_count <> 0 AND v.name IN (SELECT c.name FROM chosen AS c)
    ORDER BY v.name
  ),
  bar AS (
    SELECT
      count(*) AS changes_count,
      group_concat(c.line, char(10)) AS arg_more,
      (SELECT min(v.ts) FROM raw_vmstat AS v) AS from_ts,
      (SELECT max(v.ts) FROM raw_vmstat AS v) AS to_ts
    FROM change AS c
  )
SELECT
  coalesce(
    v.ts, CASE v.sample WHEN 'before' THEN b.first_ts ELSE b.last_ts END
  ) AS ts,
  NULL AS dur,
  'Writeback/vmstat/' || replace(replace(v.name, '\', '\\'), '/', '\/')
    AS track,
  NULL AS name,
  v.value,
  'count' AS unit,
  NULL AS arg_more
FROM raw_vmstat AS v
CROSS JOIN wb_bounds AS b
CROSS JOIN is_sampled AS s
WHERE s.samples > 0
  AND v.name IN (SELECT c.name FROM chosen AS c)
  AND v.value IS NOT NULL
UNION ALL
SELECT
  coalesce(r.from_ts, b.first_ts),
  coalesce(r.to_ts, b.last_ts) - coalesce(r.from_ts, b.first_ts),
  'Writeback/vmstat/before and after',
  r.changes_count || ' counters changed',
  NULL, NULL, r.arg_more
FROM bar AS r
CROSS JOIN wb_bounds AS b
CROSS JOIN is_sampled AS s
WHERE s.samples = 0 AND r.changes_count > 0;

-- @timeline tl_pressure
-- @title    Time lost for want of a resource
-- @order    82
-- @group    Pressure: The kernel's own measure of waits (PSI), sampled by
--   wbscope record. A point shows the time up to the next one.
-- @track    * some [share]: time in which a task of a CPU waited, mean of CPUs
--   by their time not idle
-- @track    * full [share]: time in which it did and no other task could run
-- @summary  Shares of the time in which tasks waited for CPU, I/O and memory.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_pressure AS
WITH
  curve(place, name) AS (
    SELECT 0, ' some'
    UNION ALL SELECT 1, ' full'
  )
SELECT
  s.ts - s.dur_ns AS ts,
  NULL AS dur,
  'Writeback/Pressure/' || replace(replace(s.object, '\', '\\'), '/', '\/')
    || c.name AS track,
  NULL AS name,
  min(
    1.0,
    1.0 * CASE c.place WHEN 0 THEN s.some_ns ELSE s.full_ns END / s.dur_ns
  ) AS value,
  'ratio' AS unit
FROM wb_usage AS s
CROSS JOIN curve AS c
WHERE s.source = 'psi' AND (c.place = 0 OR s.full_ns IS NOT NULL)
UNION ALL
-- Behind the last sample nothing is known.
SELECT
  max(s.ts),
  NULL,
  'Writeback/Pressure/' || replace(replace(s.object, '\', '\\'), '/', '\/')
    || c.name,
  NULL, 0,
  'ratio'
FROM wb_usage AS s
CROSS JOIN curve AS c
WHERE s.source = 'psi' AND (c.place = 0 OR s.full_ns IS NOT NULL)
GROUP BY s.object, c.name;

-- @timeline tl_bdi_sample
-- @title    Dirty pages and throughput of each bdi
-- @order    42
-- @group    Backing devices: Statistics of each bdi, sampled by wbscope record,
--   also while no task is throttled. A curve of a rate shows the time up to its
--   next point.
-- @level    One backing device (bdi), or what one cgroup writes to it
-- @track    dirty [bytes]: dirty pages, not under writeback
-- @track    writeback [bytes]: pages under writeback
-- @track    wb_thresh [bytes]: its share of the dirty threshold
-- @track    dirtied [rate]: pages that were dirtied
-- @track    written [rate]: pages that were written
-- @track    write_bw [rate]: the kernel's smoothed estimate of written
-- @summary  Dirty and writeback pages of each bdi against its threshold, and
--   what was written against the estimate.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_bdi_sample AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'dirty', 'bytes'
    UNION ALL SELECT 1, 'writeback', 'bytes'
    UNION ALL SELECT 2, 'wb_thresh', 'bytes'
    UNION ALL SELECT 3, 'dirtied', 'bytes/s'
    UNION ALL SELECT 4, 'written', 'bytes/s'
    UNION ALL SELECT 5, 'write_bw', 'bytes/s'
  ),
  told AS (
    SELECT
      s.ts, s.dur_ns,
      s.device AS bdi,
      s.cgroup_ino, s.dirty_bytes, s.writeback_bytes, s.wb_thresh_bytes,
      1.0 * s.dirtied_bytes * u.second_ns / nullif(s.dur_ns, 0)
        AS dirtied_bytes_per_s,
      1.0 * s.written_bytes * u.second_ns / nullif(s.dur_ns, 0)
        AS written_bytes_per_s,
      s.write_bw_bytes_per_s
    FROM wb_usage AS s
    CROSS JOIN wb_units AS u
    WHERE s.source = 'bdi'
    UNION ALL
    -- Behind the last sample nothing is known.
    SELECT max(s.ts) + 1, 0, s.device, s.cgroup_ino, 0, 0, 0, 0, 0, 0
    FROM wb_usage AS s
    WHERE s.source = 'bdi'
    GROUP BY s.device, s.cgroup_ino
  )
SELECT
  s.ts - CASE WHEN c.place IN (3, 4) THEN s.dur_ns ELSE 0 END AS ts,
  NULL AS dur,
  'Writeback/Backing devices/'
    || device_part!(d.device, s.bdi)
    || CASE
      WHEN s.cgroup_ino = 1 THEN ' root cgroup'
      WHEN s.cgroup_ino > 1 THEN ' cgroup ' || s.cgroup_ino
      ELSE ''
    END
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN s.dirty_bytes
    WHEN 1 THEN s.writeback_bytes
    WHEN 2 THEN s.wb_thresh_bytes
    WHEN 3 THEN s.dirtied_bytes_per_s
    WHEN 4 THEN s.written_bytes_per_s
    WHEN 5 THEN s.write_bw_bytes_per_s
  END AS value,
  c.unit
FROM told AS s
CROSS JOIN curve AS c
LEFT JOIN wb_device AS d ON d.bdi = s.bdi
WHERE c.place NOT IN (3, 4) OR s.dur_ns IS NOT NULL;

-- @timeline tl_block_sample
-- @title    How busy each disk was
-- @order    112
-- @group    Disks: Statistics of each disk that did something, sampled by
--   wbscope record. A point shows the time up to the next one.
-- @level    One disk
-- @track    utilisation [share]: time with a request in flight
-- @track    written [rate]: completed writes
-- @track    read [rate]: completed reads
-- @track    request size [bytes]: mean of the requests that completed
-- @track    in flight [requests]: requests, mean over time
-- @summary  Utilisation, throughput and request size of each disk.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_block_sample AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'utilisation', 'ratio'
    UNION ALL SELECT 1, 'written', 'bytes/s'
    UNION ALL SELECT 2, 'read', 'bytes/s'
    UNION ALL SELECT 3, 'request size', 'bytes'
    UNION ALL SELECT 4, 'in flight', 'requests'
  )
SELECT
  s.ts - s.dur_ns AS ts,
  NULL AS dur,
  'Writeback/Disks/' || replace(replace(s.object, '\', '\\'), '/', '\/')
    || '/' || c.name AS track,
  NULL AS name,
  CASE c.place
    WHEN 0 THEN min(1.0 * s.busy_ns / s.dur_ns, 1.0)
    WHEN 1 THEN 1.0 * s.written_bytes * u.second_ns / s.dur_ns
    WHEN 2 THEN 1.0 * s.read_bytes * u.second_ns / s.dur_ns
    WHEN 3 THEN coalesce(
      1.0 * (s.read_bytes + s.written_bytes)
        / nullif(s.reads_count + s.writes_count, 0),
      0
    )
    WHEN 4 THEN 1.0 * s.queued_ns / s.dur_ns
  END AS value,
  c.unit
FROM wb_usage AS s
CROSS JOIN curve AS c
CROSS JOIN wb_units AS u
WHERE s.source = 'block'
UNION ALL
-- Behind the last sample nothing is known.
SELECT
  max(s.ts),
  NULL,
  'Writeback/Disks/' || replace(replace(s.object, '\', '\\'), '/', '\/')
    || '/' || c.name,
  NULL, 0, c.unit
FROM wb_usage AS s
CROSS JOIN curve AS c
WHERE s.source = 'block'
GROUP BY s.object, c.name, c.unit;

-- @timeline tl_cgroup_sample
-- @title    Cgroups that write
-- @order    131
-- @group    Cgroups: Files of the cgroups that write, sampled by wbscope
--   record. A curve of a rate or a share shows the time up to its next point.
-- @level    One cgroup; its path where the run folder has it
-- @track    dirty [bytes]: dirty pages, not under writeback (memory.stat)
-- @track    writeback [bytes]: pages under writeback
-- @track    memory [bytes]: all its memory (memory.current)
-- @track    memory.max [bytes]: the most that it may have
-- @track    written [rate]: what its tasks wrote to disks (io.stat)
-- @track    io full [share]: time in which all its tasks that could run waited
--   for I/O
-- @track    memory full [share]: time in which all waited for memory
-- @summary  Dirty pages, memory, writes and pressure of cgroups that write.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_cgroup_sample AS
WITH
  curve(place, name, unit) AS (
    SELECT 0, 'dirty', 'bytes'
    UNION ALL SELECT 1, 'writeback', 'bytes'
    UNION ALL SELECT 2, 'memory', 'bytes'
    UNION ALL SELECT 3, 'memory.max', 'bytes'
    UNION ALL SELECT 4, 'written', 'bytes/s'
    UNION ALL SELECT 5, 'io full', 'ratio'
    UNION ALL SELECT 6, 'memory full', 'ratio'
  ),
  told AS (
    SELECT
      s.ts - CASE WHEN c.place > 3 THEN s.dur_ns ELSE 0 END AS ts,
      'Writeback/Cgroups/cgroup ' || s.cgroup_ino
        || coalesce(
          ' ' || replace(replace(s.object, '\', '\\'), '/', '\/'),
          ''
        ) || '/' || c.name AS track,
      CASE c.place
        WHEN 0 THEN s.dirty_bytes
        WHEN 1 THEN s.writeback_bytes
        WHEN 2 THEN s.memory_bytes
        WHEN 3 THEN s.memory_max_bytes
        WHEN 4 THEN 1.0 * s.written_bytes * u.second_ns / nullif(s.dur_ns, 0)
        WHEN 5 THEN min(1.0, 1.0 * s.full_ns / nullif(s.dur_ns, 0))
        WHEN 6 THEN min(1.0, 1.0 * s.memory_full_ns / nullif(s.dur_ns, 0))
      END AS value,
      c.unit
    FROM wb_usage AS s
    CROSS JOIN curve AS c
    CROSS JOIN wb_units AS u
    WHERE s.source = 'cgroup'
  ),
  last_told AS (
    SELECT max(s.ts) AS ts FROM wb_usage AS s WHERE s.source = 'cgroup'
  )
SELECT
  t.ts,
  NULL AS dur,
  t.track,
  NULL AS name,
  t.value, t.unit
FROM told AS t
WHERE t.value IS NOT NULL AND t.ts IS NOT NULL
UNION ALL
-- Behind the last sample nothing is known.
SELECT l.ts, NULL, t.track, NULL, 0, min(t.unit)
FROM told AS t
CROSS JOIN last_told AS l
WHERE t.unit <> 'bytes'
GROUP BY t.track, l.ts;
